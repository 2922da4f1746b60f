/* dmem.c: see dmem.h. */
#include "tracer/machine/dmem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

int dmem_folder(char *out, size_t room)
{
    const char *given = getenv("REMAT_CGROUP");
    char line[PATH_MAX + 16];
    int rc = -ENOENT;
    if (given && *given)
        return (size_t)snprintf(out, room, "%s", given) < room ? 0 : -ENAMETOOLONG;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && rc && fgets(line, sizeof line, f))
        if (!strncmp(line, "0::/", 4)) { /* the unified hierarchy's line */
            line[strcspn(line, "\n")] = '\0';
            rc = (size_t)snprintf(out, room, CGROUP_ROOT "%s", line[4] ? line + 3 : "") < room ? 0 : -ENAMETOOLONG;
        }
    if (f)
        fclose(f);
    return rc;
}

/* "nvidia/0000:3b:00.0/vidmem" is the memory of device 0000:3b:00.0; so is "drm/0000:3b:00.0/vram0". */
static bool is_memory_of(const char *region, size_t n, const char *pci)
{
    const char *slash = memchr(region, '/', n);
    const char *last = memrchr(region, '/', n);
    size_t want = strlen(pci);
    if (!slash || last == slash)
        return false;
    const char *own = slash + 1, *kind = last + 1;
    size_t own_n = (size_t)(last - own), kind_n = n - (size_t)(kind - region);
    while (own_n > want && *own == '0') /* eight digits of domain, or four */
        own++, own_n--;
    while (want > own_n && *pci == '0')
        pci++, want--;
    return own_n == want && !strncasecmp(own, pci, want) &&
           ((kind_n >= 6 && !strncmp(kind, "vidmem", 6)) || (kind_n >= 4 && !strncmp(kind, "vram", 4)));
}

/* The value for this device in FOLDER/FILE: 1 and *bytes (DMEM_NONE for "max"), or 0: not there. */
static int value(const char *folder, const char *file, const char *pci, uint64_t *bytes)
{
    char path[PATH_MAX], line[512];
    int found = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file) >= sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        size_t n = strcspn(line, " \t\n");
        const char *text = line + n + strspn(line + n, " \t");
        if (!is_memory_of(line, n, pci))
            continue;
        char *end;
        errno = 0;
        *bytes = strtoull(text, &end, 10);
        if (!strncmp(text, "max", 3))
            *bytes = DMEM_NONE, found = 1;
        else
            found = *text >= '0' && *text <= '9' && !errno;
    }
    if (f)
        fclose(f);
    return found;
}

void dmem_read(const char *folder, const char *pci, struct dmem *out)
{
    char at[PATH_MAX];
    *out = (struct dmem){.max_bytes = DMEM_NONE, .room_bytes = DMEM_NONE};
    if ((size_t)snprintf(at, sizeof at, "%s", folder) >= sizeof at)
        return;
    uint64_t v;
    if ((value(at, "dmem.min", pci, &v) && v) || (value(at, "dmem.low", pci, &v) && v)) {
        out->soft_bytes = v == DMEM_NONE ? 0 : v; /* "max": all of it is protected, so nothing is aimed at */
        if (out->soft_bytes)
            snprintf(out->from, sizeof out->from, "%.200s/dmem.min", at);
    }
    for (;;) { /* a limit above binds as well; the root has no file */
        uint64_t max, now = 0;
        if (value(at, "dmem.max", pci, &max) && max != DMEM_NONE) {
            if (!value(at, "dmem.current", pci, &now) || now == DMEM_NONE)
                now = 0;
            uint64_t room = max > now ? max - now : 0;
            if (max < out->max_bytes)
                out->max_bytes = max;
            if (room < out->room_bytes) {
                out->room_bytes = room;
                snprintf(out->from, sizeof out->from, "%.200s/dmem.max", at);
            }
        }
        char *slash = strrchr(at, '/');
        if (!slash || slash == at || !strcmp(at, CGROUP_ROOT))
            return;
        *slash = '\0';
    }
}

bool dmem_present(const char *folder)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/dmem.max", folder) < sizeof path && access(path, R_OK) == 0;
}
