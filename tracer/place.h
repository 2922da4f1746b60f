/* place.h: a file name, resolved by the kernel's rules against links and files that other users lay in wait.
 *
 * The kernel's rules (fs.protected_symlinks, fs.protected_regular, fs.protected_fifos at their strictest) hold here whatever the machine's settings are:
 *   - A symbolic link that lies in a folder which everybody may write to is followed only where its owner is this process's user or the folder's owner.
 *     The kernel checks the last link of a name in sticky folders alone; here every link of a name is checked, in sticky folders or not.
 *   - A file, pipe or device that stands in a sticky folder which others may write to is written only where its owner is this process's user or the
 *     folder's owner. Example: root writes /tmp/stats.json, and a user has made a file of that name before: -EACCES.
 * The folder is held open: files are made, looked at and renamed afterwards by the descriptor and one name in it, so that nobody can put another folder
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
    bool there;            /* a file of that name exists: `st` */
    struct stat st, folder;
    const char *why;       /* after -EACCES by a rule above: the reason, one phrase; else NULL */
};

/* Resolves `path`. The file need not exist, its folder must. On success the caller ends with place_close(). -EISDIR: the name of a folder. */
int place_find(const char *path, struct place *p);
void place_close(struct place *p);
/* Whether the rule for files lets this process write the file that `st` describes, in the folder of `p`. */
bool place_may_write(const struct place *p, const struct stat *st);

#endif
