/* scratch.h: the folder in which this process exchanges files with the planner: BASE/remat-plan-PID-XXXXXX, mode 0700.
 *
 * BASE is the first of $TMPDIR, /tmp, /var/tmp, /dev/shm that takes a folder, but never a folder that everybody may write to without the sticky bit: other users
 * could rename files there.
 * A killed process leaves its folder behind; the user's next process that makes one in the same BASE removes it. A folder counts as left behind only if ALL holds:
 *   - its name has exactly the form above, with the number of a process that has ended, its owner is this user, and nobody else may look into it;
 *   - the file `lock` in it has the folder's name and inode as scratch_make() wrote them: in a copied or renamed folder they differ;
 *   - nobody holds the lock on that file: its maker holds it for its whole life, whatever pid namespace the maker lives in;
 *   - it holds nothing but files that remat makes there.
 * Every other folder stays, whatever it is called. With `keep` (REMAT_KEEP_PLAN) the folder is the user's: no lock is made, so no process removes it.
 *
 * Threads: one at a time. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SCRATCH_H
#define REMAT_POLICY_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

enum { SCRATCH_PATH = 512 };

struct scratch {
    char path[SCRATCH_PATH]; /* "": no folder */
    dev_t dev;
    ino_t ino;
    int lock; /* descriptor of the file `lock`, open for as long as the folder is in use; -1: no lock */
};

int scratch_make(struct scratch *s, bool keep);
/* Removes the folder with every file of remat's in it; `keep`: only the file of the planner's errors goes. Does nothing without a folder. */
void scratch_remove(struct scratch *s, bool keep);

#endif
