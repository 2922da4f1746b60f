/* conf.h: the system file of maxima, /etc/remat.conf; remat.conf(5) is its manual.
 *
 * One rule a line, `#` begins a comment:
 *
 *   max   user alice      12G     no process of theirs gets more of a device, whatever it asks for
 *   max   group students  40%     of the device's memory
 *   max   everyone        none
 *   total everyone        50%     all of a user's processes on a device together
 *   limit group students  30%     what holds for who asks for nothing
 *
 * For each of the three words the most particular rules count and the others do not: those of the user, else those of any of
 * the user's groups, else those of everyone. Where several count, the smallest does.
 *
 * The place of the file is fixed when remat is built (REMAT_CONF). The variable REMAT_CONF_ALSO names a second file: both are
 * asked, and the smaller maximum holds. So the variable can take, never give.
 *
 * Threads: pure but for the caller's struct; name lookups (getpwuid_r, getgrnam_r) are the C library's.
 * Errors: a file that is not there has no rules. A line that cannot be read is kept in `bad`, and the other lines count.
 */
#ifndef REMAT_TRACER_CONF_H
#define REMAT_TRACER_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef REMAT_CONF
#define REMAT_CONF "/etc/remat.conf"
#endif

enum { CONF_RULES = 64, CONF_TEXT = 160 };

struct conf_who {
    uid_t uid;
    const char *user; /* NULL: the number has no name */
    const gid_t *groups;
    size_t n_groups;
};

/* A size as a rule has it; both 0: none. */
struct conf_rule {
    uint64_t bytes;
    double pct;
    char from[CONF_TEXT]; /* "FILE:LINE, user alice" */
};

/* The rules of one file that count for one user. More than CONF_RULES of one rank: the rest is kept in `bad`. */
struct conf {
    struct conf_rule max[CONF_RULES], limit[CONF_RULES], total[CONF_RULES];
    unsigned n_max, n_limit, n_total;
    unsigned n_bad;
    char bad[2 * CONF_TEXT]; /* the first line that could not be read: "FILE:LINE:COLUMN: what, what to do" */
};

/* Reads one file. 0, or a negative errno other than -ENOENT: the file is there and cannot be read. */
int conf_read(const char *path, const struct conf_who *who, struct conf *out);
/* The same for the calling process's real user and all its groups. */
int conf_read_own(const char *path, struct conf *out);
/* Where some device could be held by it: the first maximum or total that is not `none`; else NULL. */
const struct conf_rule *conf_holds(const struct conf *c);
/* The smallest of n rules on a device of this size; NULL: none. Its bytes are left in *bytes. */
const struct conf_rule *conf_least(const struct conf_rule *rules, unsigned n, uint64_t device_bytes, uint64_t *bytes);

#endif
