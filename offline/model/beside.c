#include "offline/model/beside.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int beside_self(char *out, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", out, room);
    if (n < 0)
        return -errno;
    if ((size_t)n >= room)
        return -ENAMETOOLONG;
    out[n] = '\0';
    return 0;
}

int beside_find(const char *file, char *out, size_t room)
{
    static const char *const places[] = {"", "/../lib", "/../lib/remat"};
    char self[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
    int rc = beside_self(self, sizeof self);
    if (rc)
        return rc;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s%s/%s", self, places[i], file) >= sizeof path)
            return -ENAMETOOLONG;
        if (access(path, R_OK) == 0 && realpath(path, real))
            return (size_t)snprintf(out, room, "%s", real) < room ? 0 : -ENAMETOOLONG;
    }
    return -ENOENT;
}
