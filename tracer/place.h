/* place.h: a name of a file, resolved the way the kernel resolves names where other users may lay links and files in wait.
 *
 * The kernel's rules (fs.protected_symlinks, fs.protected_regular, fs.protected_fifos at their strictest) hold here whatever the machine's settings are:
 *   - A symbolic link that lies in a folder which everybody may write to is followed only where its owner is this process's user or the folder's owner.
 *     The kernel asks this of the last link of a name and of sticky folders alone; here every link of a name is asked, sticky or not.
 *   - A file, pipe or device that stands in a sticky folder which others may write to is written only where its owner is this process's user or the
 *     folder's owner. Example: root writes /tmp/stats.json, and a user has made a file of that name before: -EACCES.
 * The folder is held open: what is made, looked at and renamed afterwards goes by the descriptor and one name in it, so that nobody can put another folder
 * in its place in between.
 *
 * Threads: any. Errors: 0 or a negative errno.
 */
#ifndef REMAT_TRACER_PLACE_H
#define REMAT_TRACER_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { PLACE_PATH = 4096, PLACE_NAME = 256 };

struct place {
    int dir;               /* the folder, opened with O_PATH; -1: none */
    char path[PLACE_PATH]; /* folder and name as text, links followed: for messages */
    char name[PLACE_NAME]; /* the last component: no link stands there */
    bool there;            /* something stands there: `st` */
    struct stat st, folder;
    const char *why;       /* of -EACCES by one of the rules above: one phrase; else NULL */
};

/* Resolves `path`. The file need not exist, its folder must. On success the caller ends with place_close(). -EISDIR: the name of a folder. */
int place_find(const char *path, struct place *p);
void place_close(struct place *p);
/* Whether the rule for files lets this process write what `st` describes, in the folder of `p`. */
bool place_may_write(const struct place *p, const struct stat *st);

#endif
