/* folders.h: folders in which the processes of one user meet (pages of `remat status`, ledgers of groups), where no other user can keep them from meeting.
 *
 * A name in a folder that everybody may write to can be taken by somebody else first. So no name is relied on: what counts is whose a folder is. A folder is the
 * user's if it is no link, belongs to the user, and nobody else may write to it. Where they lie, in this order:
 *
 *   /run/remat/UID/SORT                      /run/remat is root's; root makes UID there for whom it likes, and for itself
 *   /run/user/UID/SORT                       made by the login manager
 *   /dev/shm/SORT-UID, /dev/shm/SORT-UID-XXXXXX      the second, with letters that nobody can foretell, where somebody else has the first
 *   /tmp/SORT-UID, /tmp/SORT-UID-XXXXXX              where /dev/shm is full, or not there
 *
 * /dev/shm and /tmp count only if they are sticky, or not everybody may write to them. No variable of the environment moves them, so that programs of one user
 * that were started in different ways see the same folders. Several may be there at once: who looks for something looks in all of them.
 * SORT: "remat" pages, "remat-groups" ledgers.
 *
 * Threads: any. Errors: 0 or a negative errno.
 */
#ifndef REMAT_TRACER_MACHINE_FOLDERS_H
#define REMAT_TRACER_MACHINE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FOLDERS_MOST = 8, FOLDER_PATH = 512 };

struct folders {
    unsigned n;
    struct folder {
        char path[FOLDER_PATH];
        unsigned parent; /* place in the list above */
    } at[FOLDERS_MOST];
};

/* Those of this user that are there, in the order above, names sorted. `only`: they lie in that parent and in no other (NULL: as above). */
void folders_list(const char *sort, const char *only, struct folders *f);
/* One more, in the first parent in which `have` has none. -EACCES: there is none where it could be made. */
int folders_make(const char *sort, const char *only, const struct folders *have, char path[FOLDER_PATH]);
/* Calls `each` with all of them, of all users, until it does not answer 0; returns what it answered. */
int folders_each(const char *sort, int (*each)(void *arg, const char *path, uid_t owner), void *arg);
/* Whether a folder that the user has named (REMAT_STATUS_DIR) is this user's; made where it is not there. */
bool folders_is_ours(const char *path);

#endif
