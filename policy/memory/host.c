/* host.c: see host.h. */
#include "policy/memory/host.h"

#include "policy/process/status.h"
#include "tracer/machine/folders.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

static const uint64_t NO_LIMIT = UINT64_MAX;

static FILE *open_at(const char *root, const char *dir, const char *name)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s%s%s", root, dir, name) < sizeof path ? fopen(path, "re") : NULL;
}

/* The number that a file holds. NO_LIMIT: another word ("max"), a number so large that it means no limit, or no such file. */
static uint64_t number_in(const char *root, const char *dir, const char *name)
{
    unsigned long long v;
    FILE *f = open_at(root, dir, name);
    if (!f)
        return NO_LIMIT;
    bool is_number = fscanf(f, "%llu", &v) == 1 && v < 1ull << 60;
    fclose(f);
    return is_number ? v : NO_LIMIT;
}

/* Bytes by the file's line "KEY value" or "KEY: value", whose value is in `unit` bytes; 0 where no line has the key. */
static uint64_t row_of(const char *root, const char *dir, const char *name, const char *key, uint64_t unit)
{
    char line[256];
    unsigned long long v = 0;
    const size_t n = strlen(key);
    FILE *f = open_at(root, dir, name);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':')) {
            v = strtoull(line + n + 1, NULL, 10);
            break;
        }
    if (f)
        fclose(f);
    return v * unit;
}

/* ---- cgroups -------------------------------------------------------------------------------------------------------- */

/* Bytes that one cgroup still allows. Its inactive file cache counts as free: the kernel drops it when memory is asked for. */
static uint64_t level_free(const char *root, const char *dir, bool v2)
{
    uint64_t limit = number_in(root, dir, v2 ? "/memory.max" : "/memory.limit_in_bytes");
    uint64_t high = v2 ? number_in(root, dir, "/memory.high") : NO_LIMIT;
    uint64_t used = number_in(root, dir, v2 ? "/memory.current" : "/memory.usage_in_bytes");
    if (high < limit)
        limit = high;
    if (limit == NO_LIMIT || used == NO_LIMIT)
        return limit;
    uint64_t cache = row_of(root, dir, "/memory.stat", v2 ? "inactive_file" : "total_inactive_file", 1);
    used -= cache < used ? cache : used;
    return limit > used ? limit - used : 0;
}

/* The least that a cgroup and all cgroups above it still allow, as far as they can be seen. */
static uint64_t path_free(const char *root, const char *mount, const char *path, bool v2)
{
    char dir[PATH_MAX];
    uint64_t least = NO_LIMIT;
    if ((size_t)snprintf(dir, sizeof dir, "%s%s", mount, path) >= sizeof dir)
        return least;
    for (size_t n = strlen(dir), top = strlen(mount);; dir[n] = '\0') {
        while (n > top && dir[n - 1] == '/')
            dir[--n] = '\0';
        uint64_t here = level_free(root, dir, v2);
        if (here < least)
            least = here;
        if (n <= top)
            return least;
        while (n > top && dir[n - 1] != '/')
            n--;
    }
}

/* mountinfo writes blanks and the like as \ooo. */
static void plain(char *s)
{
    char *to = s;
    for (; *s; to++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && isdigit((unsigned char)s[2]) && isdigit((unsigned char)s[3])) {
            *to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else
            *to = *s++;
    }
    *to = '\0';
}

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (!at[n] || strchr(",\n ", at[n])))
            return true;
    return false;
}

/* `mount`: where memory cgroups of this version are mounted; `top`: which of them is seen there. False: they are mounted nowhere. */
static bool find_mount(const char *root, bool v2, char top[PATH_MAX], char mount[PATH_MAX])
{
    char line[4 * PATH_MAX], type[64], options[PATH_MAX];
    bool found = false;
    FILE *f = open_at(root, "/proc/self", "/mountinfo");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *after = strstr(line, " - ");
        if (!after || sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) != 2 || sscanf(after, " - %63s %*s %4095s", type, options) != 2)
            continue;
        found = v2 ? !strcmp(type, "cgroup2") : !strcmp(type, "cgroup") && has_word(options, "memory");
    }
    if (f)
        fclose(f);
    if (found) {
        plain(top);
        plain(mount);
    }
    return found;
}

static uint64_t cgroups_free(const char *root)
{
    char line[2 * PATH_MAX], top[PATH_MAX], mount[PATH_MAX];
    uint64_t least = NO_LIMIT;
    FILE *f = open_at(root, "/proc/self", "/cgroup");
    while (f && fgets(line, sizeof line, f)) { /* hierarchy:controllers:path; version 2 has no controllers */
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        const bool v2 = !names[1];
        if ((!v2 && !has_word(names + 1, "memory")) || !find_mount(root, v2, top, mount))
            continue;
        const size_t n = strlen(top);
        if (!strncmp(path, "/..", 3)) /* the cgroup lies outside of what this namespace shows */
            path = "";
        else if (n > 1 && !strncmp(path, top, n) && (path[n] == '/' || !path[n])) /* a container that sees its own part of the tree alone */
            path += n;
        uint64_t here = path_free(root, mount, path, v2);
        if (here < least)
            least = here;
    }
    if (f)
        fclose(f);
    return least;
}

uint64_t host_free_bytes(const char *root)
{
    uint64_t machine = row_of(root, "/proc", "/meminfo", "MemAvailable", 1024), groups = cgroups_free(root);
    if (!machine && groups == NO_LIMIT)
        return 8ull << 30; /* the machine tells nothing of its memory */
    return !machine || groups < machine ? groups : machine;
}

/* ---- other processes ---------------------------------------------------------------------------------------------------- */

/* Bytes that the owner of a status page has pinned; 0 where the owner is dead. A living owner holds a lock on the page. */
static uint64_t page_pinned(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct status_page page;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    bool lives = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    bool whole = pread(fd, &page, sizeof page, 0) == sizeof page && page.magic == STATUS_MAGIC;
    close(fd);
    uint64_t sum = 0;
    for (uint32_t i = 0; lives && whole && i < page.n_devices && i < STATUS_DEVICES; i++)
        sum += page.device[i].swapped_bytes;
    return sum;
}

/* Bytes pinned by the owners of all pages in a folder. The folder must be this user's: pages of other users would be believed. */
static uint64_t folder_pinned(const char *dir)
{
    char path[2 * PATH_MAX];
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *end;
        long pid = strtol(e->d_name, &end, 10);
        if (pid <= 0 || *end || pid == getpid())
            continue; /* closing a descriptor of our own page would drop its lock */
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        sum += page_pinned(path);
    }
    if (d)
        closedir(d);
    return sum;
}

uint64_t host_others_bytes(void)
{
    const char *named = status_named_dir();
    struct folders f;
    uint64_t sum = 0;
    if (named)
        return folders_is_ours(named) ? folder_pinned(named) : 0;
    folders_list(STATUS_SORT, NULL, &f);
    for (unsigned i = 0; i < f.n; i++)
        sum += folder_pinned(f.at[i].path);
    return sum;
}

uint64_t host_cap_of(uint64_t free_bytes, uint64_t own, uint64_t others, uint64_t named)
{
    if (named) {
        uint64_t most = own + (free_bytes > HOST_RESERVE ? free_bytes - HOST_RESERVE : 0);
        return named < most ? named : most;
    }
    uint64_t all = (free_bytes + own + others) / 2;
    return all > others ? all - others : 0;
}
