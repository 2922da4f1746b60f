/* place.c: see place.h. */
#include "tracer/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINKS = 40 };

static bool may_follow(const struct stat *folder, const struct stat *link)
{
    return !(folder->st_mode & S_IWOTH) || link->st_uid == geteuid() || link->st_uid == folder->st_uid;
}

bool place_may_write(const struct place *p, const struct stat *st)
{
    const mode_t others = p->folder.st_mode & (S_IWOTH | S_IWGRP);
    return !(p->folder.st_mode & S_ISVTX) || !others || st->st_uid == geteuid() || st->st_uid == p->folder.st_uid;
}

/* The walk goes on from the folder `fd`, which p owns from now on; fd -1: it could not be opened, and errno says why. */
static int enter(struct place *p, int fd)
{
    if (fd < 0)
        return -errno;
    if (p->dir >= 0)
        close(p->dir);
    p->dir = fd;
    return 0;
}

/* Appends a component to the text of the path. */
static int append(struct place *p, const char *name)
{
    const size_t n = strlen(p->path), more = strlen(name);
    const bool slash = n && p->path[n - 1] != '/';
    if (n + slash + more >= sizeof p->path)
        return -ENAMETOOLONG;
    if (slash)
        p->path[n] = '/';
    memcpy(p->path + n + slash, name, more + 1);
    return 0;
}

/* Follows the link `fd`: its target is put in front of `rest`, the components still to walk. */
static int follow(struct place *p, int fd, const struct stat *link, char rest[PLACE_PATH])
{
    char to[PLACE_PATH];
    struct stat folder;
    if (fstat(p->dir, &folder))
        return -errno;
    if (!may_follow(&folder, link)) {
        p->why = "a link of another user's, in a folder that everybody may write to, is not followed";
        return -EACCES;
    }
    const ssize_t n = readlinkat(fd, "", to, sizeof to - 1);
    const size_t left = strlen(rest);
    if (n <= 0)
        return n ? -errno : -ENOENT;
    if ((size_t)n + left + 1 >= PLACE_PATH)
        return -ENAMETOOLONG;
    memmove(rest + n, rest, left + 1); /* `rest` is empty, or begins with a slash */
    memcpy(rest, to, (size_t)n);
    if (*to != '/')
        return 0;
    strcpy(p->path, "/");
    return enter(p, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Walks over one component of `rest`. *last: the walk is over. */
static int step(struct place *p, char rest[PLACE_PATH], int *links, bool *last)
{
    char to[PLACE_NAME + 2];
    char *c = rest + strspn(rest, "/");
    const size_t n = strcspn(c, "/");
    if (!n)
        return -EISDIR;
    if (n >= PLACE_NAME)
        return -ENAMETOOLONG;
    memcpy(p->name, c, n);
    p->name[n] = '\0';
    memmove(rest, c + n, strlen(c + n) + 1);
    *last = !*rest;
    const bool dots = !strcmp(p->name, ".") || !strcmp(p->name, "..");
    if (dots && *last)
        return -EISDIR;
    if (!*last) { /* an automounter does not act for O_PATH alone */
        snprintf(to, sizeof to, "%s/.", p->name);
        struct stat unused;
        (void)!fstatat(p->dir, to, &unused, 0);
    }
    const int fd = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT && *last ? append(p, p->name) : -errno;
    int rc = fstat(fd, &p->st) ? -errno : 0;
    if (!rc && S_ISLNK(p->st.st_mode)) {
        *last = false;
        rc = ++*links > LINKS ? -ELOOP : follow(p, fd, &p->st, rest);
    } else if (!rc && *last) {
        p->there = true;
        rc = S_ISDIR(p->st.st_mode) ? -EISDIR : append(p, p->name);
    } else if (!rc) {
        rc = S_ISDIR(p->st.st_mode) ? append(p, p->name) : -ENOTDIR;
        if (!rc)
            return enter(p, fd);
    }
    close(fd);
    return rc;
}

int place_find(const char *path, struct place *p)
{
    char rest[PLACE_PATH];
    int links = 0, rc;
    bool last = false;
    memset(p, 0, sizeof *p);
    p->dir = -1;
    if (!*path)
        return -ENOENT;
    if (strlen(path) >= sizeof rest)
        return -ENAMETOOLONG;
    strcpy(rest, path);
    if (*rest == '/')
        strcpy(p->path, "/");
    rc = enter(p, open(*rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    while (!rc && !last)
        rc = step(p, rest, &links, &last);
    if (!rc && fstat(p->dir, &p->folder))
        rc = -errno;
    if (!rc && p->there && !place_may_write(p, &p->st)) {
        p->why = "it is another user's, in a sticky folder that others may write to";
        rc = -EACCES;
    }
    if (rc)
        place_close(p);
    return rc;
}

void place_close(struct place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
}
