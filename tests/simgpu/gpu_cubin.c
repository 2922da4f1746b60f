/*
 * A kernel is a function symbol with NVIDIA's "entry" bit. Its section, .text.NAME, is named by number in sh_info of
 * .nv.info.NAME (records about it), .nv.shared.NAME (its shared memory). Records are {format, attribute, 16 bits}; format 4 says
 * that the 16 bits are the size of what follows, other formats carry their value in them.
 */
#include "tests/simgpu/gpu_cubin.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EM_NVIDIA = GPU_CUBIN_MACHINE,
    STO_ENTRY = 0x10,
    FMT_SIZED = 4,
    ATTR_MAX_THREADS = 0x05,    /* three words: __launch_bounds__ */
    ATTR_PARAM = 0x17,          /* {index, ordinal:16, offset:16, flags and size << 18} */
    ATTR_PARAM_BYTES = 0x19,    /* value: bytes of all parameters */
    ATTR_REQUIRED_THREADS = 0x10,
    ATTR_PARAM_LARGE = 0x45,    /* {index, ordinal:16, offset:16, size}: where sizes do not fit above */
    MAX_PARAMS = 4096,
};

struct reader {
    const unsigned char *image;
    size_t image_bytes;
    Elf64_Ehdr head;
    const char *names; /* of sections */
    size_t names_bytes;
    char *why;
    size_t why_bytes;
};

static int broken(struct reader *r, const char *what, size_t at)
{
    snprintf(r->why, r->why_bytes, "%s at byte %zu of the cubin", what, at);
    return -EINVAL;
}

static bool inside(const struct reader *r, uint64_t at, uint64_t bytes)
{
    return at <= r->image_bytes && bytes <= r->image_bytes - at;
}

/* Section i's header; its contents are inside the image unless it has none. */
static int section(struct reader *r, unsigned i, Elf64_Shdr *out)
{
    memcpy(out, r->image + r->head.e_shoff + (size_t)i * sizeof *out, sizeof *out);
    if (out->sh_type != SHT_NOBITS && !inside(r, out->sh_offset, out->sh_size))
        return broken(r, "a section beyond the end", r->head.e_shoff + (size_t)i * sizeof *out);
    return 0;
}

/* The string at `at` of a table of n bytes; NULL: it does not end there. */
static const char *string_at(const char *table, size_t n, size_t at)
{
    return at < n && memchr(table + at, '\0', n - at) ? table + at : NULL;
}

static const char *section_name(const struct reader *r, const Elf64_Shdr *s)
{
    const char *name = string_at(r->names, r->names_bytes, s->sh_name);
    return name ? name : "";
}

static bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

static int open_elf(struct reader *r)
{
    Elf64_Shdr names;
    if (r->image_bytes < sizeof r->head)
        return broken(r, "a file cut short", r->image_bytes);
    memcpy(&r->head, r->image, sizeof r->head);
    if (memcmp(r->head.e_ident, ELFMAG, SELFMAG) || r->head.e_ident[EI_CLASS] != ELFCLASS64 ||
        r->head.e_machine != EM_NVIDIA)
        return broken(r, "no machine code for a GPU", 0);
    if (r->head.e_shentsize != sizeof names || !inside(r, r->head.e_shoff, (uint64_t)r->head.e_shnum * sizeof names) ||
        r->head.e_shstrndx >= r->head.e_shnum)
        return broken(r, "a table of sections beyond the end", r->head.e_shoff);
    int e = section(r, r->head.e_shstrndx, &names);
    if (e)
        return e;
    if (names.sh_type == SHT_NOBITS)
        return broken(r, "no names of sections", names.sh_offset);
    r->names = (const char *)r->image + names.sh_offset;
    r->names_bytes = names.sh_size;
    return 0;
}

/* The device stands in the flags: in their second byte since version 8 of this kind of file, in their first before. */
static unsigned arch_of(const Elf64_Ehdr *head)
{
    return head->e_ident[EI_ABIVERSION] >= 8 ? head->e_flags >> 8 & 0xff : head->e_flags & 0xff;
}

/* ---- symbols -------------------------------------------------------------------------------------------------------------- */

struct symbols {
    const unsigned char *at;
    size_t n;
    const char *strings;
    size_t strings_bytes;
};

static int find_symbols(struct reader *r, struct symbols *out)
{
    Elf64_Shdr s, strings;
    *out = (struct symbols){ 0 };
    for (unsigned i = 0; i < r->head.e_shnum; i++) {
        int e = section(r, i, &s);
        if (e)
            return e;
        if (s.sh_type != SHT_SYMTAB)
            continue;
        if (s.sh_link >= r->head.e_shnum || s.sh_entsize != sizeof(Elf64_Sym))
            return broken(r, "a table of symbols without its names", s.sh_offset);
        e = section(r, s.sh_link, &strings);
        if (e)
            return e;
        if (strings.sh_type == SHT_NOBITS)
            return broken(r, "no names of symbols", s.sh_offset);
        *out = (struct symbols){ r->image + s.sh_offset, s.sh_size / sizeof(Elf64_Sym),
                                 (const char *)r->image + strings.sh_offset, strings.sh_size };
        return 0;
    }
    return 0; /* code without symbols has no kernels */
}

static void symbol(const struct symbols *t, size_t i, Elf64_Sym *out)
{
    memcpy(out, t->at + i * sizeof *out, sizeof *out);
}

static bool is_kernel(const struct reader *r, const Elf64_Sym *s)
{
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && (s->st_other & STO_ENTRY) && s->st_shndx != SHN_UNDEF &&
           s->st_shndx < r->head.e_shnum;
}

/* A variable that a program can ask for: global, with a place in one of the sections for variables. */
static int is_global(struct reader *r, const Elf64_Sym *s, Elf64_Shdr *home, bool *yes)
{
    *yes = false;
    if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || s->st_shndx == SHN_UNDEF || s->st_shndx >= r->head.e_shnum || !s->st_size)
        return 0;
    int e = section(r, s->st_shndx, home);
    if (e)
        return e;
    const char *name = section_name(r, home);
    if (strcmp(name, ".nv.global") && strcmp(name, ".nv.global.init") && strcmp(name, ".nv.constant3"))
        return 0;
    if (s->st_value > home->sh_size || s->st_size > home->sh_size - s->st_value || s->st_size > 1u << 30)
        return broken(r, "a variable beyond its section", home->sh_offset);
    *yes = true;
    return 0;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

static uint32_t word(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static int add_param(struct reader *r, struct gpu_cubin_kernel *k, unsigned ordinal, uint32_t offset, uint32_t bytes, size_t at)
{
    if (ordinal >= MAX_PARAMS || bytes > GPU_CUBIN_MAX_PARAM_BYTES || offset > GPU_CUBIN_MAX_PARAM_BYTES - bytes)
        return broken(r, "an impossible parameter", at);
    if (ordinal >= k->n_params) {
        uint32_t *offsets = realloc(k->offset, (ordinal + 1) * sizeof *offsets);
        if (offsets)
            k->offset = offsets;
        uint32_t *sizes = realloc(k->bytes, (ordinal + 1) * sizeof *sizes);
        if (sizes)
            k->bytes = sizes;
        if (!offsets || !sizes)
            return -ENOMEM;
        for (unsigned i = k->n_params; i <= ordinal; i++)
            k->offset[i] = k->bytes[i] = UINT32_MAX;
        k->n_params = ordinal + 1;
    }
    k->offset[ordinal] = offset;
    k->bytes[ordinal] = bytes;
    return 0;
}

static uint32_t threads_of(const unsigned char *p)
{
    uint64_t n = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t side = word(p + 4 * i);
        n *= side ? side : 1;
        if (n > 1024)
            return 1024;
    }
    return (uint32_t)n;
}

static int read_info(struct reader *r, const Elf64_Shdr *s, struct gpu_cubin_kernel *k)
{
    const unsigned char *p = r->image + s->sh_offset, *end = p + s->sh_size;
    int e = 0;
    while (!e && end - p >= 4) {
        unsigned format = p[0], attr = p[1], value = (unsigned)p[2] | (unsigned)p[3] << 8;
        size_t at = (size_t)(p - r->image), more = format == FMT_SIZED ? value : 0;
        p += 4;
        if (more > (size_t)(end - p))
            return broken(r, "a record longer than its section", at);
        if (attr == ATTR_PARAM && more >= 12)
            e = add_param(r, k, word(p + 4) & 0xffff, word(p + 4) >> 16, word(p + 8) >> 18, at);
        else if (attr == ATTR_PARAM_LARGE && more >= 12)
            e = add_param(r, k, word(p + 4) & 0xffff, word(p + 4) >> 16, word(p + 8), at);
        else if (attr == ATTR_PARAM_BYTES && format != FMT_SIZED)
            k->param_bytes = value;
        else if ((attr == ATTR_MAX_THREADS || attr == ATTR_REQUIRED_THREADS) && more >= 12)
            k->max_threads = threads_of(p);
        p += more;
    }
    return e;
}

/* The parameter block must hold what was said to lie in it. */
static int check_params(struct reader *r, struct gpu_cubin_kernel *k)
{
    uint32_t end = 0;
    for (unsigned i = 0; i < k->n_params; i++) {
        if (k->offset[i] == UINT32_MAX)
            return broken(r, "a parameter that no record describes", 0);
        if (k->offset[i] + k->bytes[i] > end)
            end = k->offset[i] + k->bytes[i];
    }
    if (k->param_bytes < end)
        k->param_bytes = end;
    return k->param_bytes > GPU_CUBIN_MAX_PARAM_BYTES ? broken(r, "too many bytes of parameters", 0) : 0;
}

/* of_text[i]: 1 + the kernel whose code is section i. */
static int read_sections(struct reader *r, struct gpu_cubin *c, const unsigned *of_text)
{
    for (unsigned i = 0; i < r->head.e_shnum; i++) {
        Elf64_Shdr s;
        int e = section(r, i, &s);
        if (e)
            return e;
        const char *name = section_name(r, &s);
        if (of_text[i])
            c->kernels[of_text[i] - 1].registers = s.sh_info >> 24;
        if (s.sh_info >= r->head.e_shnum || !of_text[s.sh_info])
            continue;
        struct gpu_cubin_kernel *k = &c->kernels[of_text[s.sh_info] - 1];
        if (begins(name, ".nv.info.") && s.sh_type != SHT_NOBITS)
            e = read_info(r, &s, k);
        else if (begins(name, ".nv.shared."))
            k->static_shared_bytes = s.sh_size < UINT32_MAX ? (uint32_t)s.sh_size : UINT32_MAX;
        if (e)
            return e;
    }
    for (unsigned i = 0; i < c->n_kernels; i++) {
        int e = check_params(r, &c->kernels[i]);
        if (e)
            return e;
    }
    return 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------------------- */

/* Counts what there is and the bytes that the store must have; with a store, fills everything in. */
static int walk(struct reader *r, const struct symbols *t, struct gpu_cubin *c, unsigned *of_text, size_t *store_bytes)
{
    unsigned kernels = 0, globals = 0;
    size_t used = 0;
    for (size_t i = 0; i < t->n; i++) {
        Elf64_Sym s;
        Elf64_Shdr home;
        bool global;
        symbol(t, i, &s);
        int e = is_global(r, &s, &home, &global);
        if (e)
            return e;
        bool kernel = is_kernel(r, &s);
        if (!kernel && !global)
            continue;
        const char *name = string_at(t->strings, t->strings_bytes, s.st_name);
        if (!name || !*name)
            return broken(r, "a symbol without a name", (size_t)(t->at - r->image) + i * sizeof s);
        size_t room = strlen(name) + 1;
        char *copy = c->store ? c->store + used : NULL;
        used += room;
        if (copy)
            memcpy(copy, name, room);
        if (kernel && copy) {
            c->kernels[kernels] = (struct gpu_cubin_kernel){ .name = copy, .max_threads = 1024 };
            c->names[kernels] = copy;
            of_text[s.st_shndx] = kernels + 1;
        } else if (global && copy) {
            unsigned char *init = home.sh_type == SHT_NOBITS ? NULL : (unsigned char *)c->store + used;
            if (init)
                memcpy(init, r->image + home.sh_offset + s.st_value, s.st_size);
            c->globals[globals] = (struct gpu_cubin_global){ copy, s.st_size, init };
        }
        if (global && home.sh_type != SHT_NOBITS)
            used += s.st_size;
        kernels += kernel;
        globals += global;
        if (used > 1u << 30)
            return broken(r, "more variables than memory", 0);
    }
    c->n_kernels = c->store ? kernels : 0; /* 0 while there is nothing to free */
    c->n_globals = c->store ? globals : 0;
    *store_bytes = used;
    if (c->store)
        return 0;
    c->kernels = calloc(kernels + 1, sizeof *c->kernels);
    c->names = calloc(kernels + 1, sizeof *c->names);
    c->globals = calloc(globals + 1, sizeof *c->globals);
    c->store = malloc(used + 1);
    return c->kernels && c->names && c->globals && c->store ? 0 : -ENOMEM;
}

int gpu_cubin_read(const unsigned char *image, size_t image_bytes, struct gpu_cubin *out, char *why, size_t why_bytes)
{
    struct reader r = { .image = image, .image_bytes = image_bytes, .why = why, .why_bytes = why_bytes };
    struct symbols symbols;
    size_t bytes;
    *out = (struct gpu_cubin){ 0 };
    *why = '\0';
    int e = open_elf(&r);
    if (!e)
        e = find_symbols(&r, &symbols);
    if (e)
        return e;
    unsigned *of_text = calloc((size_t)r.head.e_shnum + 1, sizeof *of_text);
    e = of_text ? walk(&r, &symbols, out, of_text, &bytes) : -ENOMEM;
    if (!e)
        e = walk(&r, &symbols, out, of_text, &bytes);
    if (!e)
        e = read_sections(&r, out, of_text);
    out->arch = arch_of(&r.head);
    free(of_text);
    if (e)
        gpu_cubin_free(out);
    return e;
}

void gpu_cubin_free(struct gpu_cubin *c)
{
    for (unsigned i = 0; c->kernels && i < c->n_kernels; i++) {
        free(c->kernels[i].offset);
        free(c->kernels[i].bytes);
    }
    free(c->kernels);
    free(c->names);
    free(c->globals);
    free(c->store);
    *c = (struct gpu_cubin){ 0 };
}
