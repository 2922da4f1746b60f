/* linked.c: see linked.h. */
#include "preload/linked.h"

#include "preload/doors.h"
#include "preload/net.h"
#include "preload/provider.h"
#include "tracer/loader.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT, WORD = R_X86_64_64 };
#else
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT, WORD = R_AARCH64_ABS64 };
#endif

/* A word that holds the address of a function: the loader has filled it already, or fills it at the first call. */
struct reference {
    void **at;
    bool read_only; /* the loader has protected the word since (RELRO) */
    enum door_provider of;
    const char *name, *library; /* owned by the loader; library "": the program */
};

enum { MOST = 256, SEEN = 512 };
static struct {
    atomic_bool busy; /* a thread is in linked_look(): the other fields are its. No lock: that thread asks the loader, and others do not wait */
    struct reference list[MOST];
    int n;
    uintptr_t seen[SEEN]; /* addresses of the libraries that have been looked through (of their program headers) */
    int n_seen;
    unsigned long long gone; /* libraries unloaded before the last look: after one more, another library may lie at an address of `seen` */
} linked;

/* The tables of a library that are read here, as the loader has them in memory. */
struct dynamic {
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Rela) *plt, *others;
    size_t n_plt, n_others, n_relative;
    bool needs[DOOR_PROVIDERS];
};

static const void *at(const struct dl_phdr_info *info, ElfW(Addr) p) { return (const void *)(p < info->dlpi_addr ? p + info->dlpi_addr : p); }

static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *d)
{
    const ElfW(Dyn) *dyn = NULL;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (const ElfW(Dyn) *e = dyn; e && e->d_tag != DT_NULL; e++)
        switch (e->d_tag) {
        case DT_SYMTAB: d->symbols = at(info, e->d_un.d_ptr); break;
        case DT_STRTAB: d->names = at(info, e->d_un.d_ptr); break;
        case DT_JMPREL: d->plt = at(info, e->d_un.d_ptr); break;
        case DT_PLTRELSZ: d->n_plt = e->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: d->others = at(info, e->d_un.d_ptr); break;
        case DT_RELASZ: d->n_others = e->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELACOUNT: d->n_relative = e->d_un.d_val; break;
        default: break;
        }
    if (!d->symbols || !d->names)
        return false;
    for (const ElfW(Dyn) *e = dyn; e->d_tag != DT_NULL; e++)
        if (e->d_tag == DT_NEEDED) {
            d->needs[DOOR_CUDA] |= !strncmp(d->names + e->d_un.d_val, "libcuda.so", 10);
            d->needs[DOOR_NCCL] |= !strncmp(d->names + e->d_un.d_val, "libnccl.so", 10);
        }
    return d->needs[DOOR_CUDA] || d->needs[DOOR_NCCL];
}

static bool capital(char c) { return c >= 'A' && c <= 'Z'; }

/* The library whose call has this name; DOOR_PROVIDERS: neither the driver's nor NCCL's. */
static enum door_provider provider_of(const char *name)
{
    if (name[0] == 'c' && name[1] == 'u' && capital(name[2]))
        return DOOR_CUDA;
    name += name[0] == 'p';
    return !strncmp(name, "nccl", 4) && capital(name[4]) ? DOOR_NCCL : DOOR_PROVIDERS;
}

static bool is_read_only(const struct dl_phdr_info *info, uintptr_t p)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_GNU_RELRO && p - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
            return true;
    }
    return false;
}

static void note_references(const struct dl_phdr_info *info, const struct dynamic *d, const ElfW(Rela) *list, size_t n)
{
    for (size_t i = 0; list && i < n && linked.n < MOST; i++) {
        const unsigned type = ELF64_R_TYPE(list[i].r_info);
        const ElfW(Sym) *s = &d->symbols[ELF64_R_SYM(list[i].r_info)];
        if ((type != SLOT && type != DATA && type != WORD) || list[i].r_addend || s->st_shndx != SHN_UNDEF)
            continue;
        const char *name = d->names + s->st_name, *why;
        const enum door_provider p = provider_of(name);
        if (p == DOOR_PROVIDERS || !d->needs[p] || doors_kind_of(name, &why) != DOORS_ARE_UNKNOWN)
            continue;
        const uintptr_t where = info->dlpi_addr + list[i].r_offset;
        linked.list[linked.n++] = (struct reference){(void **)where, is_read_only(info, where), p, name, info->dlpi_name};
    }
}

static bool is_seen(uintptr_t where)
{
    for (int i = 0; i < linked.n_seen; i++)
        if (linked.seen[i] == where)
            return true;
    return false;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct dynamic d;
    (void)size, (void)arg;
    if (linked.gone != info->dlpi_subs)
        linked.n_seen = 0;
    linked.gone = info->dlpi_subs;
    const uintptr_t where = (uintptr_t)info->dlpi_phdr;
    if (is_seen(where))
        return 0;
    if (linked.n_seen < SEEN)
        linked.seen[linked.n_seen++] = where;
    if (!read_dynamic(info, &d))
        return 0;
    note_references(info, &d, d.plt, d.n_plt);
    if (d.others)
        note_references(info, &d, d.others + d.n_relative, d.n_others - d.n_relative);
    return 0;
}

/* The library stays in the process: what is put there is looked for by nobody else. */
static void put_stub(const struct reference *r)
{
    void *h = loader_open(r->library[0] ? r->library : NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *real = h ? provider_symbol(r->of, r->name) : NULL;
    void *stub = real ? net_symbol(r->name, real) : NULL;
    if (!stub || stub == real || __atomic_load_n(r->at, __ATOMIC_RELAXED) == stub)
        return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *from = (void *)((uintptr_t)r->at & ~(page - 1));
    if (r->read_only && mprotect(from, page, PROT_READ | PROT_WRITE))
        return;
    __atomic_store_n(r->at, stub, __ATOMIC_RELEASE);
    if (r->read_only)
        mprotect(from, page, PROT_READ);
}

bool linked_look(void)
{
    if (atomic_exchange(&linked.busy, true))
        return false;
    linked.n = 0;
    loader_walk(look_at, NULL); /* the walk holds a lock of the loader's: look_at() asks for no symbol */
    for (int i = 0; i < linked.n; i++)
        put_stub(&linked.list[i]);
    atomic_store(&linked.busy, false);
    return true;
}
