/* cache.h: the folder of facts, plans and iterations that earlier runs found: `$XDG_CACHE_HOME/remat`, files SORT-KEY with 32 hexadecimal digits.
 *
 * A file is one entry: a header (sort, key, version of remat), the content, and a digest of both. An entry that is damaged at any byte, cut short, under another
 * name than its own, or of another version of remat does not count: it is not read. An entry is written beside its place and renamed, so that a reader sees
 * the old or the new one whole; a killed process's unfinished file is removed when a later entry is written.
 * Only this user's files are read, written or removed: the folder (made 0700) is no link, and nobody else may write to it; the files are regular, 0600, with
 * one name. All files together have CACHE_BYTES_MOST bytes and CACHE_FILES_MOST files at most: the ones used longest ago are removed. A file that is not
 * called as above is never touched.
 *
 * Threads and processes: any, at once. Errors: 0 or a negative errno; -ENOENT: there is no such entry; -EBADMSG: the entry is damaged, or of another version.
 */
#ifndef REMAT_TRACER_KNOWN_CACHE_H
#define REMAT_TRACER_KNOWN_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum cache_sort { CACHE_FACTS, CACHE_PLAN, CACHE_ITERATION, CACHE_SORTS };
enum { CACHE_BYTES_MOST = 64 << 20, CACHE_FILES_MOST = 4096, CACHE_ENTRY_MOST = 8 << 20 };

extern const char *const cache_sort_names[CACHE_SORTS];

/* The default folder: $XDG_CACHE_HOME/remat, else $HOME/.cache/remat, else "". */
void cache_folder(char *to, size_t room);
/* The entry's content; the caller frees *bytes. */
int cache_get(const char *folder, enum cache_sort sort, const uint64_t key[2], unsigned char **bytes, size_t *n);
/* Writes an entry. Makes the folder if need be. */
int cache_put(const char *folder, enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n);
/* Locks the folder against other processes that read an entry, add to it and write it back. Returns a descriptor, whose close() gives the lock back; -EAGAIN:
 * another process has the lock. */
int cache_lock(const char *folder);
/* Calls `each` for every file that is called like an entry, in no order, until `each` does not return 0. */
int cache_each(const char *folder, int (*each)(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s), void *arg);
/* An entry as the bytes of its file, to ship to another machine: made, and read. cache_sealed(): -EBADMSG as above; *bytes points into `file`; *whole: bytes that
 * the entry takes of `file`. */
int cache_seal(enum cache_sort sort, const uint64_t key[2], const void *bytes, size_t n, unsigned char **file, size_t *file_bytes);
int cache_sealed(const unsigned char *file, size_t file_bytes, enum cache_sort *sort, uint64_t key[2], const unsigned char **bytes, size_t *n, size_t *whole);

#endif
