/* cache.c: see cache.h. */
#include "tracer/known/cache.h"
#include "tracer/known/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef REMAT_VERSION
#define REMAT_VERSION "unknown"
#endif

enum { NAME = 64, VERSION = 40, LEFT_OVER_S = 600 };

/* The digit is raised with each change of the entries' content, or of the way in which remat finds it out. */
static const char MAGIC[8] = "remat\n1";

struct header {
    char magic[8], version[VERSION];
    uint64_t sort, key[2], bytes, sum[2]; /* sum: of the header with zeros here, and of the content */
};

const char *const cache_sort_names[CACHE_SORTS] = {"facts", "plan", "iteration"};

/* ---- one entry ------------------------------------------------------------------------------------------------------ */

static void sum_of(const struct header *h, const void *content, uint64_t sum[2])
{
    struct header all = *h;
    uint64_t both[4];
    all.sum[0] = all.sum[1] = 0;
    digest(&all, sizeof all, both);
    digest(content, h->bytes, both + 2);
    digest(both, sizeof both, sum);
}

static struct header header_of(enum cache_sort sort, const uint64_t key[2], size_t n)
{
    struct header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, MAGIC, sizeof h.magic);
    snprintf(h.version, sizeof h.version, "%s", REMAT_VERSION);
    h.sort = sort;
    h.key[0] = key[0], h.key[1] = key[1];
    h.bytes = n;
    return h;
}

int cache_seal(enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n, unsigned char **file, size_t *file_bytes)
{
    struct header h = header_of(sort, key, n);
    if (n > CACHE_ENTRY_MOST)
        return -EFBIG;
    if (!(*file = malloc(sizeof h + n)))
        return -ENOMEM;
    sum_of(&h, bytes, h.sum);
    memcpy(*file, &h, sizeof h);
    memcpy(*file + sizeof h, bytes, n);
    *file_bytes = sizeof h + n;
    return 0;
}

int cache_sealed(const unsigned char *file, size_t file_bytes, enum cache_sort *sort, uint64_t key[2], const unsigned char **bytes, size_t *n, size_t *whole)
{
    struct header h;
    uint64_t sum[2];
    if (file_bytes < sizeof h)
        return -EBADMSG;
    memcpy(&h, file, sizeof h);
    const struct header ours = header_of(CACHE_FACTS, h.key, 0);
    if (memcmp(h.magic, ours.magic, sizeof h.magic) || memcmp(h.version, ours.version, sizeof h.version) || h.sort >= CACHE_SORTS ||
        h.bytes > CACHE_ENTRY_MOST || h.bytes > file_bytes - sizeof h)
        return -EBADMSG;
    sum_of(&h, file + sizeof h, sum);
    if (sum[0] != h.sum[0] || sum[1] != h.sum[1])
        return -EBADMSG;
    *sort = (enum cache_sort)h.sort;
    memcpy(key, h.key, sizeof h.key);
    *bytes = file + sizeof h;
    *n = h.bytes;
    *whole = sizeof h + h.bytes;
    return 0;
}

void cache_folder(char *to, size_t room)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (base && *base)
        n = snprintf(to, room, "%s/remat", base);
    else if (home && *home)
        n = snprintf(to, room, "%s/.cache/remat", home);
    if (n < 0 || (size_t)n >= room)
        *to = '\0';
}

/* ---- the folder ----------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct stat *st) { return st->st_uid == geteuid() && !(st->st_mode & 022); }

/* Opens the folder: a descriptor, or a negative errno. `make`: makes the folder, and the folder above it, if need be. */
static int open_folder(const char *folder, bool make)
{
    char above[PATH_MAX];
    struct stat st;
    if (!folder[0] || getuid() != geteuid())
        return -ENOENT;
    if (make && mkdir(folder, 0700) && errno == ENOENT) {
        const char *last = strrchr(folder, '/');
        if (last && last > folder && (size_t)(last - folder) < sizeof above) {
            memcpy(above, folder, (size_t)(last - folder));
            above[last - folder] = 0;
            (void)mkdir(above, 0700);
            (void)mkdir(folder, 0700);
        }
    }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, &st) && is_ours(&st))
        return fd;
    close(fd);
    return -EACCES;
}

static void name_of(enum cache_sort sort, const uint64_t key[2], char name[NAME])
{
    snprintf(name, NAME, "%s-%016" PRIx64 "%016" PRIx64, cache_sort_names[sort], key[0], key[1]);
}

static bool digits(const char *s, uint64_t *v)
{
    *v = 0;
    for (int i = 0; i < 16; i++) {
        const char *at = s[i] ? strchr("0123456789abcdef", s[i]) : NULL;
        if (!at)
            return false;
        *v = *v << 4 | (uint64_t)(at - "0123456789abcdef");
    }
    return true;
}

/* Whether `name` begins with an entry's name. *rest: the text after that. */
static bool is_entry(const char *name, enum cache_sort *sort, uint64_t key[2], const char **rest)
{
    for (int s = 0; s < CACHE_SORTS; s++) {
        const size_t n = strlen(cache_sort_names[s]);
        if (strncmp(name, cache_sort_names[s], n) || name[n] != '-' || !digits(name + n + 1, &key[0]) || !digits(name + n + 17, &key[1]))
            continue;
        *sort = (enum cache_sort)s;
        *rest = name + n + 33;
        return true;
    }
    return false;
}

static int open_entry(int dir, const char *name, struct stat *st)
{
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, st) && S_ISREG(st->st_mode) && is_ours(st) && st->st_nlink == 1 && st->st_size <= (off_t)(CACHE_ENTRY_MOST + sizeof(struct header)))
        return fd;
    close(fd);
    return -EACCES;
}

static int read_all(int fd, unsigned char *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t r = read(fd, to + at, n - at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r ? -errno : -EBADMSG;
        at += (size_t)r;
    }
    return 0;
}

int cache_get(const char *folder, enum cache_sort sort, const uint64_t key[2], unsigned char **bytes, size_t *n)
{
    char name[NAME];
    struct stat st;
    const int dir = open_folder(folder, false);
    if (dir < 0)
        return dir;
    name_of(sort, key, name);
    const int fd = open_entry(dir, name, &st);
    close(dir);
    if (fd < 0)
        return fd;
    unsigned char *file = malloc((size_t)st.st_size + 1);
    const unsigned char *content;
    enum cache_sort is;
    uint64_t own[2];
    size_t whole;
    int r = file ? read_all(fd, file, (size_t)st.st_size) : -ENOMEM;
    if (!r)
        r = cache_sealed(file, (size_t)st.st_size, &is, own, &content, n, &whole);
    if (!r && (whole != (size_t)st.st_size || is != sort || own[0] != key[0] || own[1] != key[1]))
        r = -EBADMSG;
    if (!r) {
        (void)futimens(fd, NULL); /* a file's time is that of its latest use */
        memmove(file, content, *n);
        *bytes = file;
    } else
        free(file);
    close(fd);
    return r;
}

struct found {
    char name[NAME];
    uint64_t bytes;
    int64_t used_s;
};

static int longest_ago_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return (x->used_s > y->used_s) - (x->used_s < y->used_s);
}

/* Removes the entries used longest ago where there are too many, and unfinished files of killed processes. */
static void trim(int dir)
{
    DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct found *all = d ? calloc(2 * CACHE_FILES_MOST, sizeof *all) : NULL;
    uint64_t bytes = 0, key[2];
    size_t n = 0;
    for (struct dirent *e; all && n < 2 * CACHE_FILES_MOST && (e = readdir(d));) {
        enum cache_sort sort;
        const char *rest;
        struct stat st;
        if (!is_entry(e->d_name, &sort, key, &rest) || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || !is_ours(&st))
            continue;
        if (*rest) {
            if (!strncmp(rest, ".new.", 5) && st.st_mtime + LEFT_OVER_S < time(NULL))
                (void)unlinkat(dir, e->d_name, 0);
            continue;
        }
        memcpy(all[n].name, e->d_name, strlen(e->d_name) + 1); /* no longer than an entry's name */
        all[n].bytes = (uint64_t)st.st_size;
        all[n].used_s = st.st_mtime;
        bytes += all[n++].bytes;
    }
    if (all)
        qsort(all, n, sizeof *all, longest_ago_first);
    for (size_t i = 0; i < n && (bytes > CACHE_BYTES_MOST || n - i > CACHE_FILES_MOST); i++) {
        (void)unlinkat(dir, all[i].name, 0);
        bytes -= all[i].bytes;
    }
    free(all);
    if (d)
        closedir(d);
}

static int write_all(int fd, const unsigned char *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t r = write(fd, from + at, n - at);
        if (r < 0 && errno != EINTR)
            return -errno;
        at += r > 0 ? (size_t)r : 0;
    }
    return 0;
}

int cache_put(const char *folder, enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n)
{
    char name[NAME], beside[NAME + 32];
    unsigned char *file;
    size_t file_bytes;
    struct stat st;
    int r = cache_seal(sort, key, bytes, n, &file, &file_bytes);
    if (r)
        return r;
    const int dir = open_folder(folder, true);
    if (dir < 0) {
        free(file);
        return dir;
    }
    name_of(sort, key, name);
    snprintf(beside, sizeof beside, "%s.new.%ld", name, (long)getpid());
    if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && (!S_ISREG(st.st_mode) || !is_ours(&st)))
        r = -EACCES;
    (void)unlinkat(dir, beside, 0); /* unfinished file of a process that had this number before */
    const int fd = r ? -1 : openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!r)
        r = fd < 0 ? -errno : write_all(fd, file, file_bytes);
    if (fd >= 0 && close(fd) && !r)
        r = -errno;
    if (!r && renameat(dir, beside, dir, name))
        r = -errno;
    if (r && fd >= 0)
        (void)unlinkat(dir, beside, 0);
    if (!r)
        trim(dir);
    free(file);
    close(dir);
    return r;
}

int cache_lock(const char *folder)
{
    const int dir = open_folder(folder, true);
    if (dir < 0)
        return dir;
    const int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    const int r = fd < 0 ? -errno : flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    close(dir);
    if (r && fd >= 0)
        close(fd);
    return r ? r : fd;
}

int cache_each(const char *folder, int (*each)(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s), void *arg)
{
    const int dir = open_folder(folder, false);
    if (dir < 0)
        return dir == -ENOENT ? 0 : dir;
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return -ENOMEM;
    }
    int r = 0;
    for (struct dirent *e; !r && (e = readdir(d));) {
        enum cache_sort sort;
        uint64_t key[2];
        const char *rest;
        struct stat st;
        if (is_entry(e->d_name, &sort, key, &rest) && !*rest && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
            r = each(arg, sort, key, (uint64_t)st.st_size, st.st_mtime);
    }
    closedir(d);
    return r;
}
