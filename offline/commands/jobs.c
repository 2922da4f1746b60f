/* jobs.c: see jobs.h. */
#include "offline/commands/jobs.h"

#include "tracer/machine/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>

static void name_of(uid_t uid, char *to, size_t room)
{
    const struct passwd *p = getpwuid(uid);
    if (p && *p->pw_name)
        snprintf(to, room, "%s", p->pw_name);
    else
        snprintf(to, room, "%u", (unsigned)uid);
}

/* A command line may hold anything, and it goes to a terminal and into JSON: what is no valid UTF-8 becomes the characters that
 * its bytes stand for in Latin-1, what is a control character a question mark. */
static void clean(char *to, size_t room, const char *from, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n && from[i];) {
        unsigned char c = (unsigned char)from[i];
        size_t len = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
        for (size_t k = 1; k < len; k++)
            if (i + k >= n || ((unsigned char)from[i + k] & 0xC0) != 0x80)
                len = 0;
        unsigned char second = len > 1 ? (unsigned char)from[i + 1] : 0;
        if ((c == 0xE0 && second < 0xA0) || (c == 0xED && second >= 0xA0) || (c == 0xF0 && second < 0x90) || (c == 0xF4 && second >= 0x90))
            len = 0;
        if (c == 0xC2 && second < 0xA0)
            len = 0; /* control characters again */
        char one[4];
        if (len == 1) {
            one[0] = c < 0x20 || c == 0x7F ? '?' : (char)c;
        } else if (len) {
            memcpy(one, from + i, len);
        } else if (c < 0xA0) {
            one[0] = '?';
        } else {
            one[0] = (char)(0xC0 | c >> 6);
            one[1] = (char)(0x80 | (c & 0x3F));
        }
        size_t put = len ? len : c < 0xA0 ? 1 : 2;
        if (used + put >= room)
            break;
        memcpy(to + used, one, put);
        used += put;
        i += len ? len : 1;
    }
    to[used] = '\0';
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of the last iterations; less where the next one is late. */
static double rate_of(const struct status_device *d)
{
    uint64_t each = atomic_load(&d->iteration_ns), last = atomic_load(&d->last_iteration_ns), now = now_ns();
    if (!each || !last || last > now)
        return 0;
    uint64_t since = now - last;
    if (since > 2 * each)
        each = since;
    return 1e9 / (double)each;
}

/* 32 hexadecimal digits as NVML and DCGM write them: GPU-01234567-89ab-cdef-0123-456789abcdef. */
static void uuid_text(const char *digits, char to[JOBS_UUID])
{
    *to = '\0';
    if (strspn(digits, "0123456789abcdef") == 32 && !digits[32])
        snprintf(to, JOBS_UUID, "GPU-%.8s-%.4s-%.4s-%.4s-%s", digits, digits + 8, digits + 12, digits + 16, digits + 20);
}

static int add(struct jobs *j, const struct job *one)
{
    struct job *more = realloc(j->list, (j->n + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    j->list = more;
    more[j->n++] = *one;
    return 0;
}

static int add_page(struct jobs *j, const struct status_page *p, uid_t uid, int64_t pid)
{
    struct job one = {.uid = uid, .pid = pid, .started_unix_s = p->started_unix_s, .device = -1, .price = NAN};
    char text[sizeof p->group], uuid[sizeof p->device->uuid];
    memcpy(text, p->group, sizeof text);
    clean(one.host, sizeof one.host, p->host, sizeof p->host);
    name_of(uid, one.user, sizeof one.user);
    clean(one.command, sizeof one.command, p->command, sizeof p->command);
    clean(one.group, sizeof one.group, text, sizeof text);
    uint32_t n = atomic_load(&p->n_devices);
    if (!n)
        return add(j, &one);
    int rc = 0;
    for (uint32_t i = 0; !rc && i < n && i < STATUS_DEVICES; i++) {
        const struct status_device *d = &p->device[i];
        uint64_t mode = atomic_load(&d->mode_text);
        char mode_text[sizeof mode];
        memcpy(mode_text, &mode, sizeof mode);
        clean(one.mode, sizeof one.mode, mode_text, sizeof mode_text);
        clean(one.pci, sizeof one.pci, d->pci, sizeof d->pci);
        memcpy(uuid, d->uuid, sizeof uuid);
        uuid[sizeof uuid - 1] = '\0';
        uuid_text(uuid, one.uuid);
        one.device = d->ordinal;
        one.device_bytes = d->device_bytes;
        one.limit_bytes = atomic_load(&d->limit_bytes);
        one.in_use_bytes = atomic_load(&d->in_use_bytes);
        one.peak_bytes = atomic_load(&d->peak_bytes);
        one.host_bytes = atomic_load(&d->swapped_bytes);
        one.iterations = atomic_load(&d->iterations);
        one.iterations_planned = atomic_load(&d->iterations_planned);
        one.replays = atomic_load(&d->replays);
        one.swaps_out = atomic_load(&d->swaps_out);
        one.swaps_in = atomic_load(&d->swaps_in);
        one.departures = atomic_load(&d->departures);
        one.compared = atomic_load(&d->compared);
        one.differed = atomic_load(&d->differed);
        const int64_t price_ppm = atomic_load(&d->price_ppm);
        one.price = price_ppm == STATUS_NO_PRICE ? NAN : (double)price_ppm / 1e6;
        one.iterations_per_s = rate_of(d);
        rc = add(j, &one);
    }
    return rc;
}

/* A living process's page, in *page. The lock is only asked for, so reading is enough; the kernel tells its holder's number as this process's namespace has
 * it, 0 where it has none (`*pid` is then what the page says). */
static bool read_page(int dir, const char *name, struct status_page *page, int64_t *pid)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fd < 0)
        return false;
    bool alive = !fstat(fd, &st) && S_ISREG(st.st_mode) && !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK &&
                 pread(fd, page, sizeof *page, 0) == (ssize_t)sizeof *page && page->magic == STATUS_MAGIC;
    *pid = lock.l_pid > 0 ? lock.l_pid : page->pid;
    close(fd);
    return alive;
}

/* A folder, if it is the user's whose it should be; opened, so that it stays the same one. */
static DIR *open_folder(const char *path, uid_t owner)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    DIR *d = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == owner ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    return d;
}

/* All living pages of one folder. A folder that is not there, or is not `owner`'s, adds nothing. */
static int read_folder(void *arg, const char *path, uid_t owner)
{
    struct jobs *j = arg;
    DIR *d = open_folder(path, owner);
    int rc = 0;
    for (struct dirent *e; d && !rc && (e = readdir(d));) {
        struct status_page page = {0};
        int64_t pid;
        if (!status_is_page_name(e->d_name))
            continue;
        if (read_page(dirfd(d), e->d_name, &page, &pid))
            rc = add_page(j, &page, owner, pid);
        else if (owner == geteuid() && status_is_stale(dirfd(d), e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
    return rc;
}

static int read_ledgers(void *arg, const char *path, uid_t owner)
{
    struct jobs *j = arg;
    DIR *d = open_folder(path, owner);
    int rc = 0;
    for (struct dirent *e; d && !rc && (e = readdir(d));) {
        char file[64 + sizeof e->d_name];
        if (!strchr(e->d_name, '@'))
            continue;
        snprintf(file, sizeof file, "/proc/self/fd/%d/%s", dirfd(d), e->d_name);
        struct job_group *more = realloc(j->groups, (j->n_groups + 1) * sizeof *more);
        if (!more) {
            rc = -ENOMEM;
            break;
        }
        j->groups = more;
        if (ledger_read(file, &more[j->n_groups].view) == 0 && more[j->n_groups].view.n) {
            name_of(owner, more[j->n_groups].user, sizeof more->user);
            uuid_text(more[j->n_groups].view.device, more[j->n_groups].uuid);
            j->n_groups++;
        }
    }
    if (d)
        closedir(d);
    return rc;
}

static int by_user_and_pid(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    int c = strcmp(x->user, y->user);
    if (!c)
        c = (x->pid > y->pid) - (x->pid < y->pid);
    return c ? c : (x->device > y->device) - (x->device < y->device);
}

double jobs_share(const struct job *s) { return s->device_bytes ? (double)s->in_use_bytes / (double)s->device_bytes : 0; }

/* ---- other orders ------------------------------------------------------------------------------------------------------- */

static double limit_of(const struct job *s) { return (double)s->limit_bytes; }
static double use_of(const struct job *s) { return (double)s->in_use_bytes; }
static double host_of(const struct job *s) { return (double)s->host_bytes; }
static double peak_of(const struct job *s) { return (double)s->peak_bytes; }
static double price_of(const struct job *s) { return isnan(s->price) ? -INFINITY : s->price; }
static double rate_told(const struct job *s) { return s->iterations_per_s; }

static double (*sort_key)(const struct job *);

static int by_key(const void *a, const void *b)
{
    const double x = sort_key(a), y = sort_key(b);
    return x != y ? (x < y) - (x > y) : by_user_and_pid(a, b);
}

static int by_pid(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : by_user_and_pid(a, b);
}

static int by_gpu(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->device != y->device ? (x->device > y->device) - (x->device < y->device) : by_user_and_pid(a, b);
}

int jobs_sort(struct jobs *j, const char *by)
{
    static const struct {
        const char *name;
        double (*key)(const struct job *);
        int (*order)(const void *, const void *);
    } orders[] = {{"user", NULL, by_user_and_pid}, {"pid", NULL, by_pid}, {"gpu", NULL, by_gpu}, {"limit", limit_of, by_key}, {"use", use_of, by_key},
                  {"share", jobs_share, by_key}, {"host", host_of, by_key}, {"price", price_of, by_key}, {"rate", rate_told, by_key}, {"peak", peak_of, by_key}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (!strcmp(orders[i].name, by)) {
            sort_key = orders[i].key;
            if (j->n)
                qsort(j->list, j->n, sizeof *j->list, orders[i].order);
            return 0;
        }
    return -EINVAL;
}

static int by_group(const void *a, const void *b)
{
    const struct job_group *x = a, *y = b;
    int c = strcmp(x->user, y->user);
    if (!c)
        c = strcmp(x->view.group, y->view.group);
    return c ? c : strcmp(x->view.device, y->view.device);
}

int jobs_read(struct jobs *j)
{
    const char *pages = status_named_dir(), *ledgers = getenv("REMAT_GROUP_DIR");
    memset(j, 0, sizeof *j);
    int rc = pages ? read_folder(j, pages, geteuid()) : folders_each(STATUS_SORT, read_folder, j);
    if (!rc)
        rc = ledgers && *ledgers ? read_ledgers(j, ledgers, geteuid()) : folders_each("remat-groups", read_ledgers, j);
    if (j->n)
        qsort(j->list, j->n, sizeof *j->list, by_user_and_pid);
    if (j->n_groups)
        qsort(j->groups, j->n_groups, sizeof *j->groups, by_group);
    return rc;
}

void jobs_free(struct jobs *j)
{
    free(j->list);
    free(j->groups);
    memset(j, 0, sizeof *j);
}
