/* status.c: publishing side of status.h. */
#include "policy/process/status.h"

#include "tracer/machine/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* The descriptor must stay open: closing it would drop the lock. */
static int status_fd = -1;
static char status_path[PATH_MAX];

static void fill_command(char *to, size_t room)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        n = 0;
    for (ssize_t i = 0; i + 1 < n; i++)
        if (to[i] == '\0' || to[i] == '\n')
            to[i] = ' ';
    to[n] = '\0';
}

bool status_is_stale(int dir, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st, now;
    uint64_t magic = 0;
    const int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    bool stale = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size == sizeof(struct status_page) &&
                 pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic == STATUS_MAGIC && !fcntl(fd, F_GETLK, &lock) &&
                 lock.l_type == F_UNLCK;
    /* the page is not stale if a new process of that number has put its own there meanwhile */
    stale = stale && !fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_ino == st.st_ino;
    close(fd);
    return stale;
}

/* Renames the page from `tmp` to `name`. A file that has the name already is removed only if it is a page whose owner has ended. 0 or a negative errno. */
static int give_name(int dir, const char *tmp, const char *name)
{
    if (status_is_stale(dir, name))
        unlinkat(dir, name, 0);
    if (!renameat2(dir, tmp, dir, name, RENAME_NOREPLACE))
        return 0;
    struct stat st;
    if ((errno != EINVAL && errno != ENOSYS) || !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return -EEXIST;
    return renameat(dir, tmp, dir, name) ? -errno : 0;
}

/* ".<namespace>" of this process's pid namespace; "" where the kernel has none. */
static void namespace_text(char *to, size_t room)
{
    struct stat st;
    if (stat("/proc/self/ns/pid", &st))
        *to = '\0';
    else
        snprintf(to, room, ".%llu", (unsigned long long)st.st_ino);
}

/* `which`: the text after the process number in the page's name. NULL: no place. */
static struct status_page *publish_as(const char *path, const char *which)
{
    char tmp[48], name[48];
    struct status_page page = {.magic = STATUS_MAGIC, .pid = getpid(), .started_unix_s = time(NULL)}, *s = MAP_FAILED;
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || (size_t)snprintf(status_path, sizeof status_path, "%s/%d%s", path, (int)getpid(), which) >= sizeof status_path) {
        if (dir >= 0)
            close(dir);
        return NULL;
    }
    snprintf(tmp, sizeof tmp, ".%d%s", (int)getpid(), which);
    snprintf(name, sizeof name, "%d%s", (int)getpid(), which);
    gethostname(page.host, sizeof page.host - 1);
    fill_command(page.command, sizeof page.command);
    if (status_is_stale(dir, tmp))
        unlinkat(dir, tmp, 0);
    const int fd = openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* The file is locked before it gets its name: a reader never sees an unlocked file of a living owner. It is written before it is mapped: a full disk is an
     * error of write(), but a signal at a store to the mapping. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fd >= 0 && !fcntl(fd, F_SETLK, &lock) && write(fd, &page, sizeof page) == (ssize_t)sizeof page)
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s != MAP_FAILED && give_name(dir, tmp, name)) {
        munmap(s, sizeof *s);
        s = MAP_FAILED;
    }
    if (s == MAP_FAILED && fd >= 0) {
        unlinkat(dir, tmp, 0);
        close(fd);
    }
    close(dir);
    if (s == MAP_FAILED)
        return NULL;
    status_fd = fd;
    return s;
}

static struct status_page *publish_in(const char *path)
{
    char which[32];
    struct status_page *s = publish_as(path, "");
    namespace_text(which, sizeof which);
    return s || !*which ? s : publish_as(path, which);
}

struct status_page *status_open(void)
{
    const char *named = status_named_dir();
    struct folders have;
    char made[FOLDER_PATH];
    if (named)
        return folders_is_ours(named) ? publish_in(named) : NULL;
    folders_list(STATUS_SORT, NULL, &have);
    struct status_page *s = NULL;
    for (unsigned i = 0; !s && i < have.n; i++)
        s = publish_in(have.at[i].path);
    /* no folder took the page: a new folder is made in each place that has none */
    while (!s && !folders_make(STATUS_SORT, NULL, &have, made)) {
        const unsigned before = have.n;
        s = publish_in(made);
        folders_list(STATUS_SORT, NULL, &have);
        if (have.n <= before)
            break;
    }
    return s;
}

struct status_device *status_add_device(struct status_page *s, int ordinal, const char *pci, const uint8_t *uuid, uint64_t device_bytes)
{
    uint32_t n = s ? atomic_load(&s->n_devices) : STATUS_DEVICES;
    if (n == STATUS_DEVICES)
        return NULL;
    s->device[n].ordinal = ordinal;
    snprintf(s->device[n].pci, sizeof s->device[n].pci, "%s", pci);
    for (int i = 0; uuid && i < 16; i++)
        snprintf(s->device[n].uuid + 2 * i, sizeof s->device[n].uuid - 2 * (size_t)i, "%02x", uuid[i]);
    s->device[n].device_bytes = device_bytes;
    atomic_store(&s->device[n].price_ppm, STATUS_NO_PRICE);
    atomic_store(&s->n_devices, n + 1);
    return &s->device[n];
}

void status_close(struct status_page *s)
{
    if (!s)
        return;
    /* The name goes first: the lock must still be held while anyone can find the file. */
    unlink(status_path);
    munmap(s, sizeof *s);
    close(status_fd);
    status_fd = -1;
}

void status_after_fork_child(struct status_page *s)
{
    if (!s)
        return;
    munmap(s, sizeof *s);
    if (status_fd >= 0)
        close(status_fd);
    status_fd = -1;
}
