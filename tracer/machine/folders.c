/* folders.c: see folders.h. */
#include "tracer/machine/folders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAWN = 6, PARENTS = 4 };

struct parent {
    const char *path;
    bool is_shared; /* users' folders lie in it side by side, and users make them; else each in a folder UID that root has made */
};

static const struct parent parents[PARENTS] = {{"/run/remat", false}, {"/run/user", false}, {"/dev/shm", true}, {"/tmp", true}};

static bool is_users(const char *path, uid_t uid)
{
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 022);
}

/* Nobody can rename or remove in it what is another's. */
static bool is_sound(const struct parent *p)
{
    struct stat st;
    if (lstat(p->path, &st) || !S_ISDIR(st.st_mode))
        return false;
    return p->is_shared ? !(st.st_mode & S_IWOTH) || st.st_mode & S_ISVTX : st.st_uid == 0 && !(st.st_mode & 022);
}

static bool fits(int n) { return n > 0 && n < FOLDER_PATH; }

/* Whose folder a name in a shared parent says it is: SORT-UID or SORT-UID-XXXXXX. */
static bool owner_by_name(const char *name, const char *sort, uid_t *uid)
{
    const size_t n = strlen(sort);
    if (strncmp(name, sort, n) != 0 || name[n] != '-')
        return false;
    const char *digits = name + n + 1, *rest = digits + strspn(digits, "0123456789");
    const size_t len = (size_t)(rest - digits);
    if (!len || len > 10 || (digits[0] == '0' && len > 1))
        return false;
    const unsigned long long v = strtoull(digits, NULL, 10);
    *uid = (uid_t)v;
    if (v > UINT32_MAX || !*rest)
        return v <= UINT32_MAX;
    for (int i = 1; i <= DRAWN; i++)
        if (!isalnum((unsigned char)rest[i]))
            return false;
    return rest[0] == '-' && !rest[DRAWN + 1];
}

/* ---- looking ------------------------------------------------------------------------------------------------------------ */

struct look {
    const char *sort;
    uid_t uid;
    bool everybody;
    int (*each)(void *arg, const char *path, uid_t owner);
    void *arg;
};

static int look_private(const struct parent *p, const struct look *l, uid_t uid)
{
    char base[FOLDER_PATH], path[FOLDER_PATH];
    if (!fits(snprintf(base, sizeof base, "%s/%u", p->path, (unsigned)uid)) || !is_users(base, uid) ||
        !fits(snprintf(path, sizeof path, "%s/%u/%s", p->path, (unsigned)uid, l->sort)) || !is_users(path, uid))
        return 0;
    return l->each(l->arg, path, uid);
}

static int look_shared(const struct parent *p, const struct look *l, const char *name)
{
    char path[FOLDER_PATH];
    uid_t uid;
    if (!owner_by_name(name, l->sort, &uid) || (!l->everybody && uid != l->uid) || !fits(snprintf(path, sizeof path, "%s/%s", p->path, name)) ||
        !is_users(path, uid))
        return 0;
    return l->each(l->arg, path, uid);
}

static int look(const struct parent *p, const struct look *l)
{
    int rc = 0;
    if (!is_sound(p))
        return 0;
    if (!p->is_shared && !l->everybody)
        return look_private(p, l, l->uid);
    DIR *d = opendir(p->path);
    for (struct dirent *e; d && !rc && (e = readdir(d));) {
        if (p->is_shared)
            rc = look_shared(p, l, e->d_name);
        else if (isdigit((unsigned char)e->d_name[0]) && !e->d_name[strspn(e->d_name, "0123456789")])
            rc = look_private(p, l, (uid_t)strtoul(e->d_name, NULL, 10));
    }
    if (d)
        closedir(d);
    return rc;
}

int folders_each(const char *sort, int (*each)(void *arg, const char *path, uid_t owner), void *arg)
{
    const struct look l = {.sort = sort, .everybody = true, .each = each, .arg = arg};
    int rc = 0;
    for (unsigned i = 0; !rc && i < PARENTS; i++)
        rc = look(&parents[i], &l);
    return rc;
}

struct listing {
    struct folders *f;
    unsigned parent;
};

/* Sorted, so that all processes that see more than there is room for see the same ones. */
static int note(void *arg, const char *path, uid_t owner)
{
    const struct listing *l = arg;
    struct folders *f = l->f;
    unsigned i = f->n;
    (void)owner;
    while (i && f->at[i - 1].parent == l->parent && strcmp(f->at[i - 1].path, path) > 0)
        i--;
    if (i == FOLDERS_MOST)
        return 0;
    f->n += f->n < FOLDERS_MOST;
    memmove(&f->at[i + 1], &f->at[i], (f->n - 1 - i) * sizeof f->at[0]);
    snprintf(f->at[i].path, sizeof f->at[i].path, "%s", path);
    f->at[i].parent = l->parent;
    return 0;
}

void folders_list(const char *sort, const char *only, struct folders *f)
{
    f->n = 0;
    for (unsigned i = 0; i < (only ? 1 : PARENTS); i++) {
        struct listing to = {f, i};
        const struct look l = {.sort = sort, .uid = geteuid(), .each = note, .arg = &to};
        const struct parent other = {only, true};
        look(only ? &other : &parents[i], &l);
    }
}

/* ---- making ------------------------------------------------------------------------------------------------------------- */

static int make(const char *path)
{
    if (mkdir(path, 0700) && errno != EEXIST)
        return -errno;
    return is_users(path, geteuid()) ? 0 : -EEXIST;
}

static int make_private(const struct parent *p, const char *sort, char path[FOLDER_PATH])
{
    const unsigned uid = (unsigned)geteuid();
    if (!fits(snprintf(path, FOLDER_PATH, "%s/%u", p->path, uid)))
        return -ENAMETOOLONG;
    if (p == &parents[0] && !uid && mkdir(p->path, 0755) == 0)
        (void)!chmod(p->path, 0755); /* whatever root's umask is: users find their own folders in it */
    if (p == &parents[0] && !uid && is_sound(p))
        mkdir(path, 0700);
    if (!is_sound(p) || !is_users(path, uid))
        return -EACCES;
    return fits(snprintf(path, FOLDER_PATH, "%s/%u/%s", p->path, uid, sort)) ? make(path) : -ENAMETOOLONG;
}

static int make_shared(const struct parent *p, const char *sort, char path[FOLDER_PATH])
{
    const unsigned uid = (unsigned)geteuid();
    if (!is_sound(p))
        return -EACCES;
    if (!fits(snprintf(path, FOLDER_PATH, "%s/%s-%u", p->path, sort, uid)))
        return -ENAMETOOLONG;
    int rc = make(path);
    if (rc != -EEXIST)
        return rc;
    if (!fits(snprintf(path, FOLDER_PATH, "%s/%s-%u-XXXXXX", p->path, sort, uid)))
        return -ENAMETOOLONG;
    return mkdtemp(path) ? 0 : -errno;
}

int folders_make(const char *sort, const char *only, const struct folders *have, char path[FOLDER_PATH])
{
    for (unsigned i = 0; i < (only ? 1 : PARENTS); i++) {
        bool there = false;
        for (unsigned k = 0; k < have->n; k++)
            there |= have->at[k].parent == i;
        const struct parent other = {only, true}, *p = only ? &other : &parents[i];
        if (!there && !(p->is_shared ? make_shared(p, sort, path) : make_private(p, sort, path)))
            return 0;
    }
    return -EACCES;
}

bool folders_is_ours(const char *path)
{
    return !make(path);
}
