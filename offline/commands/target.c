/* target.c: see target.h. */
#include "offline/commands/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where execvp() finds it. False: nowhere. */
static bool target_path(const char *command, char *out, size_t room)
{
    if (strchr(command, '/'))
        return snprintf(out, room, "%s", command) < (int)room && !access(out, F_OK);
    const char *path = getenv("PATH");
    for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        const size_t n = strcspn(path, ":");
        if (snprintf(out, room, "%.*s%s%s", (int)n, path, n ? "/" : "", command) < (int)room && !access(out, X_OK))
            return true;
    }
    return false;
}

static size_t read_start(const char *path, void *to, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, to, room);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* The interpreter that a script's first line names. False: it is no script. */
static bool script_interpreter(const char *path, char *out, size_t room)
{
    char line[256] = "";
    if (read_start(path, line, sizeof line - 1) < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[strcspn(line, "\n")] = 0;
    const char *name = line + 2 + strspn(line + 2, " \t");
    return snprintf(out, room, "%.*s", (int)strcspn(name, " \t\r"), name) < (int)room;
}

void target_refused(const char *command, int why, char *line, size_t room)
{
    char path[PATH_MAX], interpreter[PATH_MAX];
    struct stat st;
    const bool there = target_path(command, path, sizeof path);
    if (why == ENOENT && there && script_interpreter(path, interpreter, sizeof interpreter) && access(interpreter, F_OK))
        snprintf(line, room, "cannot run %s: its interpreter %s is not there", command, interpreter);
    else if (why == ENOENT && there)
        snprintf(line, room, "cannot run %s: the loader that it asks for is not there: a program of another system or processor", command);
    else if (why == ENOENT && strpbrk(command, " \t"))
        snprintf(line, room, "cannot run '%s': no program has this name; leave out the quotes: the command and its arguments are separate words, as in remat run -- "
                   "python train.py", command);
    else if (why == EACCES && there && !stat(path, &st) && S_ISDIR(st.st_mode))
        snprintf(line, room, "cannot run %s: is a directory", command);
    else
        snprintf(line, room, "cannot run %s: %s", command, strerror(why));
}

/* An ELF file for which no loader is asked: neither an interpreter nor anything to be linked when it starts. */
static bool is_static(const char *path)
{
    unsigned char start[4096];
    const size_t n = read_start(path, start, sizeof start);
    Elf64_Ehdr e;
    if (n < sizeof e || memcmp(start, ELFMAG, SELFMAG) || start[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&e, start, sizeof e);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;
        if (e.e_phoff > n || e.e_phoff + (i + 1) * sizeof p > n)
            return false;
        memcpy(&p, start + e.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_INTERP)
            return false;
    }
    return e.e_phnum > 0;
}

/* Whether the kernel changes the user or the group when it starts this file: the loader ignores LD_PRELOAD then. */
static bool changes_user(const struct stat *st)
{
    return ((st->st_mode & S_ISUID) && st->st_uid != getuid()) || ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getgid());
}

bool target_unheld(const char *command, char *line, size_t room)
{
    char path[PATH_MAX], interpreter[PATH_MAX];
    struct stat st;
    if (!target_path(command, path, sizeof path))
        return false;
    if (script_interpreter(path, interpreter, sizeof interpreter))
        snprintf(path, sizeof path, "%s", interpreter);
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    const bool fixed = is_static(path);
    if (!fixed && !changes_user(&st))
        return false;
    snprintf(line, room, "%s %s, so that it is held to no limit and leaves no statistics", path,
             fixed ? "is linked statically: no library is loaded in front of it"
                   : "runs as another user (set-user-id or set-group-id): the loader drops remat's library");
    return true;
}
