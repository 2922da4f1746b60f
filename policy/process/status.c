/* status.c: publishing side of status.h. */
#include "policy/process/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* The descriptor must stay open: closing it would drop the lock. */
static int status_fd = -1;
static char status_path[PATH_MAX];

/* A folder in /dev/shm could be somebody else's, laid there in wait: take it only when it is ours and closed to others. */
static int dir_is_ours(const char *dir)
{
    struct stat st;
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return 0;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & 022) == 0;
}

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

static struct status_page *publish_in(const char *dir)
{
    char tmp[PATH_MAX];
    if ((size_t)snprintf(tmp, sizeof tmp, "%s/.%d", dir, (int)getpid()) >= sizeof tmp ||
        (size_t)snprintf(status_path, sizeof status_path, "%s/%d", dir, (int)getpid()) >= sizeof status_path)
        return NULL;
    int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return NULL;
    /* Locked before it gets its name: a reader never sees an unlocked file of a living owner. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct status_page *s = MAP_FAILED;
    if (fcntl(fd, F_SETLK, &lock) == 0 && ftruncate(fd, sizeof *s) == 0)
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED) {
        unlink(tmp);
        close(fd);
        return NULL;
    }
    s->pid = getpid();
    s->started_unix_s = time(NULL);
    fill_command(s->command, sizeof s->command);
    s->magic = STATUS_MAGIC;
    if (rename(tmp, status_path) != 0) {
        munmap(s, sizeof *s);
        unlink(tmp);
        close(fd);
        return NULL;
    }
    status_fd = fd;
    return s;
}

struct status_page *status_open(void)
{
    char dir[PATH_MAX];
    for (int i = 0; status_dir(i, dir, sizeof dir); i++) {
        struct status_page *s = dir_is_ours(dir) ? publish_in(dir) : NULL;
        if (s)
            return s;
    }
    return NULL;
}

struct status_device *status_add_device(struct status_page *s, int ordinal, const char *pci)
{
    uint32_t n = s ? atomic_load(&s->n_devices) : STATUS_DEVICES;
    if (n == STATUS_DEVICES)
        return NULL;
    s->device[n].ordinal = ordinal;
    snprintf(s->device[n].pci, sizeof s->device[n].pci, "%s", pci);
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
