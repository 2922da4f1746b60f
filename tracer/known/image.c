/* image.c: see image.h. */
#include "tracer/known/image.h"
#include "tracer/known/digest.h"
#include "tracer/loader.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRAPPER = 0x466243b1, FAT = (int)0xba55ed50, LARGE = 1 << 20, PAGE = 4096, ID_MOST = 64, FAT_HEADER = 16 };

static size_t elf_bytes(const unsigned char *p, size_t most)
{
    Elf64_Ehdr h;
    if (most < sizeof h || p[EI_CLASS] != ELFCLASS64)
        return 0;
    memcpy(&h, p, sizeof h);
    const size_t tables = h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
    if (h.e_shoff > IMAGE_BYTES_MOST * 64ull || tables > most || h.e_shentsize < sizeof(Elf64_Shdr) || h.e_shnum == 0)
        return 0;
    size_t end = tables;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, p + h.e_shoff + (size_t)i * h.e_shentsize, sizeof s);
        if (s.sh_type != SHT_NOBITS && s.sh_offset < IMAGE_BYTES_MOST * 64ull && s.sh_size < IMAGE_BYTES_MOST * 64ull && s.sh_offset + s.sh_size > end)
            end = s.sh_offset + s.sh_size;
    }
    return end <= most ? end : 0;
}

static size_t fat_bytes(const unsigned char *p, size_t most)
{
    uint16_t header;
    uint64_t content;
    if (most < FAT_HEADER)
        return 0;
    memcpy(&header, p + 6, sizeof header);
    memcpy(&content, p + 8, sizeof content);
    return content < 1ull << 40 && header + content <= most ? header + content : 0;
}

/* PTX: a text ends with a zero byte, or with the `most` bytes. No other kind of image begins with a byte of a text. */
static size_t text_bytes(const char *p, size_t most)
{
    return (*p >= ' ' && *p <= '~') || *p == '\n' || *p == '\r' || *p == '\t' ? strnlen(p, most < IMAGE_BYTES_MOST ? most : IMAGE_BYTES_MOST) : 0;
}

/* Compares one byte at a time: a short text may end before the fourth. */
static bool begins_with(const unsigned char *p, uint32_t magic)
{
    return p[0] == (magic & 0xff) && p[1] == (magic >> 8 & 0xff) && p[2] == (magic >> 16 & 0xff) && p[3] == magic >> 24;
}

size_t image_bytes(const void *image, size_t most, const void **at)
{
    const unsigned char *p = image;
    if (!p || most < 4)
        return 0;
    if (most == SIZE_MAX && begins_with(p, (uint32_t)WRAPPER)) {
        memcpy(&p, p + 8, sizeof p);
        if (!p)
            return 0;
    }
    *at = p;
    return begins_with(p, 0x464c457fu) ? elf_bytes(p, most) : begins_with(p, (uint32_t)FAT) ? fat_bytes(p, most) : text_bytes((const char *)p, most);
}

/* ---- libraries ------------------------------------------------------------------------------------------------------ */

struct home {
    uintptr_t at;
    uint64_t offset;
    uint32_t id_bytes; /* 0: the image lies in no library, or in a library without a build-id */
    unsigned char id[ID_MOST];
};

static void read_notes(struct home *h, const unsigned char *p, size_t n)
{
    while (n >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, p, sizeof note);
        const size_t name = (note.n_namesz + 3u) & ~3u, all = sizeof note + name + ((note.n_descsz + 3u) & ~3u);
        if (all > n || all < sizeof note)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(p + sizeof note, "GNU", 4) && note.n_descsz <= ID_MOST) {
            h->id_bytes = note.n_descsz;
            memcpy(h->id, p + sizeof note + name, note.n_descsz);
            return;
        }
        p += all;
        n -= all;
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct home *h = arg;
    bool within = false;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && !within; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        within = p->p_type == PT_LOAD && h->at - (info->dlpi_addr + p->p_vaddr) < p->p_filesz;
    }
    if (!within)
        return 0;
    h->offset = h->at - info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum && !h->id_bytes; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_notes(h, (const unsigned char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), info->dlpi_phdr[i].p_memsz);
    return 1;
}

/* ---- identity ------------------------------------------------------------------------------------------------------- */

bool image_code(const void *image, struct known_code *code)
{
    const void *at = NULL;
    const size_t n = image_bytes(image, SIZE_MAX, &at);
    if (!n)
        return false;
    struct home h = {.at = (uintptr_t)at};
    if (n > LARGE)
        loader_walk(look_at_object, &h);
    if (!h.id_bytes) {
        if (n <= IMAGE_BYTES_MOST)
            digest(at, n, code->w);
        return n <= IMAGE_BYTES_MOST;
    }
    struct {
        uint64_t offset, bytes, page[2];
        unsigned char id[ID_MOST];
    } all = {.offset = h.offset, .bytes = n};
    digest(at, PAGE, all.page);
    memcpy(all.id, h.id, h.id_bytes);
    digest(&all, sizeof all, code->w);
    return true;
}

bool image_file_code(const char *path, struct known_code *code)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool ok = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= IMAGE_BYTES_MOST;
    unsigned char *all = ok ? malloc((size_t)st.st_size) : NULL;
    size_t n = 0;
    ok = all != NULL;
    for (ssize_t r = 1; ok && r > 0 && n < (size_t)st.st_size; n += r > 0 ? (size_t)r : 0)
        r = read(fd, all + n, (size_t)st.st_size - n);
    ok = ok && n == (size_t)st.st_size;
    if (ok)
        digest(all, n, code->w);
    free(all);
    if (fd >= 0)
        close(fd);
    return ok;
}
