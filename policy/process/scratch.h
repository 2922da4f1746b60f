/* scratch.h: the folder in which this process exchanges files with the planner: BASE/remat-plan-PID-XXXXXX, mode 0700.
 *
 * BASE is $TMPDIR, else /tmp, /var/tmp, /dev/shm: the first that takes a folder and that is no place where others may rename what is not theirs (a folder
 * that everybody may write to, without the sticky bit).
 * A process that is killed leaves its folder behind, and whoever makes one in the same BASE takes it away. A folder counts as such a leaving only if ALL holds:
 *   - its name has exactly that form, with the number of a process that is no more, and its owner is this user, and nobody else may look into it;
 *   - the file `lock` in it says its name and inode as scratch_make() wrote them: a copy or a renamed folder says another one's;
 *   - nobody holds the lock on that file: its maker does for its whole life, whatever namespace of processes it lives in;
 *   - it holds nothing but files that remat makes there.
 * Everything else stays, whatever it is called. With `keep` (REMAT_KEEP_PLAN) the folder is the user's: no lock is made, so nobody takes it away.
 *
 * Threads: one at a time. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SCRATCH_H
#define REMAT_POLICY_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

enum { SCRATCH_PATH = 512 };

struct scratch {
    char path[SCRATCH_PATH]; /* "": there is none */
    dev_t dev;
    ino_t ino;
    int lock; /* its descriptor, open for as long as the folder is in use; -1: none */
};

int scratch_make(struct scratch *s, bool keep);
/* With all that remat has put into it; `keep`: without the errors that the planner has written, and the rest stays. Nothing where there is none. */
void scratch_remove(struct scratch *s, bool keep);

#endif
