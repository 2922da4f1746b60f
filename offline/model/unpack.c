/* unpack.c: see unpack.h. */
#include "offline/model/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const char *unpack_needs(const char *bytes, size_t n)
{
    static const struct {
        const char *name, *starts;
        size_t n;
    } packer[] = {{"gzip", "\x1f\x8b", 2}, {"xz", "\xfd" "7zXZ\0", 6}, {"zstd", "\x28\xb5\x2f\xfd", 4}};
    for (size_t i = 0; i < sizeof packer / sizeof *packer; i++)
        if (n >= packer[i].n && !memcmp(bytes, packer[i].starts, packer[i].n))
            return packer[i].name;
    return NULL;
}

/* A file in memory that holds the bytes, at its start. */
static int file_of(const char *bytes, size_t n)
{
    const int fd = memfd_create("remat-packed", MFD_CLOEXEC);
    size_t put = 0;
    while (fd >= 0 && put < n) {
        const ssize_t k = write(fd, bytes + put, n - put);
        if (k <= 0) {
            close(fd);
            return -EIO;
        }
        put += (size_t)k;
    }
    return fd >= 0 && !lseek(fd, 0, SEEK_SET) ? fd : -EIO;
}

/* 0, with the pipe that the program writes to. */
static int begin(const char *with, int in, int *out, pid_t *pid)
{
    char *argv[] = {(char *)with, "-dcq", NULL};
    posix_spawn_file_actions_t a;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -EIO;
    int r = posix_spawn_file_actions_init(&a);
    if (!r) {
        r = posix_spawn_file_actions_adddup2(&a, in, 0);
        r = r ? r : posix_spawn_file_actions_adddup2(&a, ends[1], 1);
        r = r ? r : posix_spawn_file_actions_addopen(&a, 2, "/dev/null", O_WRONLY, 0);
        r = r ? r : posix_spawnp(pid, with, &a, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&a);
    }
    close(ends[1]);
    if (r)
        close(ends[0]);
    *out = ends[0];
    return -r;
}

static int read_all(int fd, size_t most, char **out, size_t *out_n)
{
    size_t room = 1 << 16, n = 0;
    char *p = malloc(room);
    while (p) {
        const ssize_t k = read(fd, p + n, room - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            *out = p;
            *out_n = n;
            return k ? -EIO : 0;
        }
        n += (size_t)k;
        if (n < room)
            continue;
        char *more = room < most ? realloc(p, 2 * room) : NULL;
        if (!more) {
            free(p);
            *out = NULL;
            return room < most ? -ENOMEM : -EFBIG;
        }
        p = more;
        room *= 2;
    }
    return -ENOMEM;
}

int unpack(const char *with, const char *bytes, size_t n, size_t most, char **out, size_t *out_n)
{
    const int in = file_of(bytes, n);
    int fd, status = -1;
    pid_t pid;
    *out = NULL;
    *out_n = 0;
    int r = in < 0 ? in : begin(with, in, &fd, &pid);
    if (in >= 0)
        close(in);
    if (r)
        return r;
    r = read_all(fd, most, out, out_n);
    close(fd); /* one that still writes ends by SIGPIPE */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!r && !(WIFEXITED(status) && !WEXITSTATUS(status)))
        r = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EINVAL;
    if (r) {
        free(*out);
        *out = NULL;
    }
    return r;
}
