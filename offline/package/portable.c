/* portable.c: what libraries for an old glibc lack that this machine's headers and compiler take for granted. Linked, with its symbols hidden, into
 * everything that `make tarball` and `make wheel` pack (glibc.py); nothing else has it.
 *
 * Each function keeps the contract of the function of its name. Written for Linux on x86_64 and aarch64.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>

/* ---- glibc 2.33: stat and its kin are functions; before, they were macros over these ---------------------------------------------- */

int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int at, const char *path, struct stat *st, int flags);
#ifdef __x86_64__
enum { STAT_VERSION = 1 };
#else
enum { STAT_VERSION = 0 };
#endif

int stat(const char *path, struct stat *st) { return __xstat(STAT_VERSION, path, st); }
int lstat(const char *path, struct stat *st) { return __lxstat(STAT_VERSION, path, st); }
int fstat(int fd, struct stat *st) { return __fxstat(STAT_VERSION, fd, st); }
int fstatat(int at, const char *path, struct stat *st, int flags) { return __fxstatat(STAT_VERSION, at, path, st, flags); }
/* with 64-bit offsets everywhere: struct stat64 is struct stat */
int stat64(const char *path, struct stat64 *st) { return stat(path, (struct stat *)st); }
int lstat64(const char *path, struct stat64 *st) { return lstat(path, (struct stat *)st); }
int fstat64(int fd, struct stat64 *st) { return fstat(fd, (struct stat *)st); }

/* ---- glibc 2.35: how libgcc finds a frame's table --------------------------------------------------------------------------------- */

struct sought {
    uintptr_t pc;
    struct dl_find_object *found;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct sought *s = arg;
    uintptr_t start = UINTPTR_MAX, end = 0, table = 0;
    bool within = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_GNU_EH_FRAME)
            table = at;
        if (h->p_type != PT_LOAD)
            continue;
        start = at < start ? at : start;
        end = at + h->p_memsz > end ? at + h->p_memsz : end;
        within |= s->pc - at < h->p_memsz;
    }
    if (!within || !table)
        return 0;
    *s->found = (struct dl_find_object){ .dlfo_map_start = (void *)start, .dlfo_map_end = (void *)end, .dlfo_eh_frame = (void *)table };
    return 1;
}

/* Of what it tells libgcc reads the table and the two ends. */
int _dl_find_object(void *pc, struct dl_find_object *found)
{
    struct sought s = { (uintptr_t)pc, found };
    return dl_iterate_phdr(find_object, &s) == 1 ? 0 : -1;
}

/* ---- glibc 2.32 and 2.36, which libstdc++ asks for ----------------------------------------------------------------------------------- */

/* false: counts of references are atomic ones, always */
char __libc_single_threaded;

uint32_t arc4random(void)
{
    uint32_t x;
    while (getrandom(&x, sizeof x, 0) != sizeof x)
        ;
    return x;
}
