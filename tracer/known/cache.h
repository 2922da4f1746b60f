/* cache.h: the folder of what earlier runs found out: `$XDG_CACHE_HOME/remat`, files SORT-KEY with 32 hexadecimal digits.
 *
 * A file is one entry: what it is (sort, key, which remat wrote it), the content, and a digest of all of that. An entry that is damaged at any byte, cut short,
 * under another name than its own, or of another version of remat is no entry: it is not read. It is written beside its place and renamed, so that a reader sees
 * the old one or the new one; what a process that was killed left over goes with the next that is written.
 * Only what is this user's is read, written or removed: the folder is (made 0700) no link, and nobody else may write to it; the files are regular, 0600, with
 * one name. All files together have CACHE_BYTES_MOST bytes at most, and there are CACHE_FILES_MOST: those that were used longest ago go. A file that is not
 * called as above is never touched.
 *
 * Threads and processes: any, at once. Errors: 0 or a negative errno; -ENOENT: there is no such entry; -EBADMSG: it is damaged, or of another version.
 */
#ifndef REMAT_TRACER_KNOWN_CACHE_H
#define REMAT_TRACER_KNOWN_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum cache_sort { CACHE_FACTS, CACHE_PLAN, CACHE_ITERATION, CACHE_SORTS };
enum { CACHE_BYTES_MOST = 64 << 20, CACHE_FILES_MOST = 4096, CACHE_ENTRY_MOST = 8 << 20 };

extern const char *const cache_sort_names[CACHE_SORTS];

/* Where it lies by default: $XDG_CACHE_HOME/remat, else $HOME/.cache/remat, else "". */
void cache_folder(char *to, size_t room);
/* The entry's content; the caller frees *bytes. */
int cache_get(const char *folder, enum cache_sort sort, const uint64_t key[2], unsigned char **bytes, size_t *n);
/* The folder is made where it is not there. */
int cache_put(const char *folder, enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n);
/* Who reads an entry, adds to it and writes it holds this meanwhile. A descriptor to close, which gives it back; -EAGAIN: another process has it. */
int cache_lock(const char *folder);
/* Every file that is called like an entry, in no order, until `each` does not return 0. */
int cache_each(const char *folder, int (*each)(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s), void *arg);
/* Entries by the bytes of their file: to ship, and what was shipped. cache_sealed(): -EBADMSG as above; content points into `file`. */
int cache_seal(enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n, unsigned char **file, size_t *file_bytes);
int cache_sealed(const unsigned char *file, size_t file_bytes, enum cache_sort *sort, uint64_t key[2], const unsigned char **bytes, size_t *n, size_t *whole);

#endif
