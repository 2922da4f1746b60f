/*
 * Machine code made in memory, for tests: a cubin with the kernels and variables a test names (their code is empty), and the
 * container that holds it, packed or not. The caller frees what it gets.
 */
#ifndef SIMGPU_MADE_CODE_H
#define SIMGPU_MADE_CODE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made_kernel {
    const char *name;
    unsigned n_params;
    const uint32_t *bytes;   /* of the parameters; each begins where the one before ends, aligned to 8 if it is 8 or more */
    unsigned max_threads;    /* 0: nothing said */
    unsigned shared_bytes, registers;
    bool large;              /* described by the records for large parameters */
};
struct made_variable {
    const char *name;
    uint64_t bytes;
    const void *init; /* NULL: zeros */
};
struct made_image {
    unsigned char *at;
    size_t n;
};

enum { MADE_ROOM = 1 << 20, MADE_SECTIONS = 256 };

struct made_writer {
    unsigned char *at;
    size_t n;
    Elf64_Shdr section[MADE_SECTIONS];
    unsigned n_sections;
    char names[1 << 15], strings[1 << 15];
    size_t names_n, strings_n;
    Elf64_Sym symbol[MADE_SECTIONS];
    unsigned n_symbols;
};

static inline size_t made_put(struct made_writer *w, const void *p, size_t n)
{
    while (w->n % 8)
        w->at[w->n++] = 0;
    size_t at = w->n;
    if (p)
        memcpy(w->at + at, p, n);
    else
        memset(w->at + at, 0, n);
    w->n += n;
    return at;
}

static inline size_t made_string(char *table, size_t *n, const char *a, const char *b)
{
    size_t at = *n;
    *n += (size_t)sprintf(table + at, "%s%s", a, b) + 1;
    return at;
}

static inline unsigned made_section(struct made_writer *w, const char *a, const char *b, unsigned type, const void *p, size_t n,
                                    unsigned info)
{
    Elf64_Shdr *s = &w->section[w->n_sections];
    *s = (Elf64_Shdr){ .sh_name = (unsigned)made_string(w->names, &w->names_n, a, b), .sh_type = type, .sh_size = n,
                       .sh_info = info };
    s->sh_offset = type == SHT_NOBITS ? w->n : made_put(w, p, n);
    return w->n_sections++;
}

static inline void made_symbol(struct made_writer *w, const char *name, unsigned type, unsigned other, unsigned section,
                               uint64_t at, uint64_t n)
{
    w->symbol[w->n_symbols++] = (Elf64_Sym){ .st_name = (unsigned)made_string(w->strings, &w->strings_n, name, ""),
                                             .st_info = ELF64_ST_INFO(STB_GLOBAL, type), .st_other = (unsigned char)other,
                                             .st_shndx = (uint16_t)section, .st_value = at, .st_size = n };
}

/* A record {format, attribute, size} with its words. */
static inline size_t made_record(unsigned char *to, unsigned attr, const uint32_t *words, unsigned n)
{
    to[0] = 4;
    to[1] = (unsigned char)attr;
    to[2] = (unsigned char)(4 * n);
    to[3] = 0;
    memcpy(to + 4, words, 4 * n);
    return 4 + 4 * n;
}

static inline void made_kernel(struct made_writer *w, const struct made_kernel *k)
{
    static unsigned char info[1 << 16];
    size_t n = 0;
    uint32_t end = 0;
    unsigned text = made_section(w, ".text.", k->name, SHT_PROGBITS, NULL, 16, k->registers << 24);
    for (unsigned i = 0; i < k->n_params; i++) {
        uint32_t a = k->bytes[i] >= 8 ? 8 : k->bytes[i] >= 4 ? 4 : 1, at = (end + a - 1) / a * a;
        uint32_t words[4] = { 0, i | at << 16, k->large ? 0 : k->bytes[i] << 18, k->bytes[i] };
        if (k->large)
            words[2] = k->bytes[i];
        n += made_record(info + n, k->large ? 0x45 : 0x17, words, 3);
        end = at + k->bytes[i];
    }
    unsigned char total[4] = { 3, 0x19, (unsigned char)end, (unsigned char)(end >> 8) };
    memcpy(info + n, total, 4);
    n += 4;
    if (k->max_threads)
        n += made_record(info + n, 0x05, (uint32_t[]){ k->max_threads, 1, 1 }, 3);
    made_section(w, ".nv.info.", k->name, SHT_LOPROC, info, n, text);
    if (k->shared_bytes)
        made_section(w, ".nv.shared.", k->name, SHT_NOBITS, NULL, k->shared_bytes, text);
    made_symbol(w, k->name, STT_FUNC, 0x10, text, 0, 16);
}

static inline struct made_image made_cubin(const struct made_kernel *kernels, unsigned n_kernels,
                                           const struct made_variable *variables, unsigned n_variables)
{
    struct made_writer *w = calloc(1, sizeof *w);
    w->at = calloc(1, MADE_ROOM);
    w->n = sizeof(Elf64_Ehdr);
    w->names_n = w->strings_n = 1;
    w->n_sections = 1;
    w->n_symbols = 1;
    for (unsigned i = 0; i < n_kernels; i++)
        made_kernel(w, &kernels[i]);
    for (unsigned i = 0; i < n_variables; i++) {
        const struct made_variable *v = &variables[i];
        unsigned home = v->init ? made_section(w, ".nv.global.init", "", SHT_PROGBITS, v->init, v->bytes, 0)
                                : made_section(w, ".nv.global", "", SHT_NOBITS, NULL, v->bytes, 0);
        made_symbol(w, v->name, STT_OBJECT, 0, home, 0, v->bytes);
    }
    unsigned strings = made_section(w, ".strtab", "", SHT_STRTAB, w->strings, w->strings_n, 0);
    unsigned symbols = made_section(w, ".symtab", "", SHT_SYMTAB, w->symbol, w->n_symbols * sizeof(Elf64_Sym), 0);
    w->section[symbols].sh_link = strings;
    w->section[symbols].sh_entsize = sizeof(Elf64_Sym);
    size_t name = made_string(w->names, &w->names_n, ".shstrtab", "");
    unsigned names = w->n_sections++;
    w->section[names] = (Elf64_Shdr){ .sh_name = (unsigned)name, .sh_type = SHT_STRTAB, .sh_size = w->names_n };
    w->section[names].sh_offset = made_put(w, w->names, w->names_n);
    Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1, 65, 8 }, .e_flags = 80 << 8, .e_type = ET_EXEC, .e_machine = 190,
                        .e_version = 1, .e_ehsize = sizeof head, .e_shentsize = sizeof(Elf64_Shdr),
                        .e_shnum = (uint16_t)w->n_sections, .e_shstrndx = (uint16_t)names };
    head.e_shoff = made_put(w, w->section, w->n_sections * sizeof(Elf64_Shdr));
    memcpy(w->at, &head, sizeof head);
    struct made_image out = { w->at, w->n };
    free(w);
    return out;
}

/* Adds an entry to a container (which may be empty: {NULL, 0}); takes neither. `unpacked` is not 0 for a payload packed with
   zstd. */
static inline struct made_image made_fat(struct made_image container, unsigned kind, unsigned arch, const void *payload,
                                         size_t n, size_t unpacked)
{
    size_t padded = (n + 7) / 8 * 8, old = container.n ? container.n : 16;
    struct made_image out = { NULL, old + 64 + padded };
    if (n >= MADE_ROOM || old >= 8 * (size_t)MADE_ROOM)
        abort();
    out.at = calloc(1, (uint32_t)out.n);
    if (container.n)
        memcpy(out.at, container.at, container.n);
    uint64_t content = out.n - 16;
    memcpy(out.at, (uint32_t[]){ 0xba55ed50, 0x00100001 }, 8);
    memcpy(out.at + 8, &content, 8);
    unsigned char *e = out.at + old;
    memcpy(e, (uint16_t[]){ (uint16_t)kind, 0x101 }, 4);
    memcpy(e + 4, (uint32_t[]){ 64 }, 4);
    memcpy(e + 8, (uint64_t[]){ padded }, 8);
    memcpy(e + 16, (uint32_t[]){ unpacked ? (uint32_t)n : 0 }, 4);
    memcpy(e + 28, (uint32_t[]){ arch }, 4);
    memcpy(e + 40, (uint64_t[]){ unpacked ? 0x8011 : 0x11 }, 8);
    memcpy(e + 56, (uint64_t[]){ unpacked }, 8);
    memcpy(e + 64, payload, n);
    return out;
}

#endif
