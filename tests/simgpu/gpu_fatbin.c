/*
 * The container: a header {magic, version, header bytes, content bytes}, then entries, each with a header of its own: kind (1
 * text, 2 machine code), header bytes, payload bytes, packed bytes, device, flags, unpacked bytes. All little endian.
 */
#include "tests/simgpu/gpu_fatbin.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MAGIC = (int)0xba55ed50, KIND_PTX = 1, KIND_ELF = 2 };
/* of one unpacked file; PyTorch's largest is 60 MiB */
static const uint64_t MAX_UNPACKED = 1ull << 30;
static const uint64_t FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000;

struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t content_bytes;
};
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t payload_bytes; /* padding included */
    uint32_t packed_bytes, unknown0;
    uint32_t unknown1, arch;
    uint64_t unknown2, flags, unknown3, unpacked_bytes;
};
_Static_assert(sizeof(struct entry) == 64, "as the compiler lays it out");

bool gpu_fatbin_is(const void *image)
{
    const unsigned char *p = image; /* one byte at a time: a text may end early */
    return p[0] == 0x50 && p[1] == 0xed && p[2] == 0x55 && p[3] == 0xba;
}

size_t gpu_fatbin_bytes(const void *image)
{
    struct header h;
    memcpy(&h, image, sizeof h);
    return h.content_bytes < 1ull << 40 ? h.header_bytes + h.content_bytes : 0;
}

static int unpack(const unsigned char *payload, const struct entry *e, struct gpu_fatbin_code *out, char *why, size_t room)
{
    if (e->unpacked_bytes == 0 || e->unpacked_bytes > MAX_UNPACKED || e->packed_bytes > e->payload_bytes) {
        snprintf(why, room, "a packed file with impossible sizes");
        return -EINVAL;
    }
    out->owned = malloc(e->unpacked_bytes);
    if (!out->owned)
        return -ENOMEM;
    size_t n = ZSTD_decompress(out->owned, e->unpacked_bytes, payload, e->packed_bytes);
    if (ZSTD_isError(n) || n != e->unpacked_bytes) {
        snprintf(why, room, "a packed file that does not unpack (%s)", ZSTD_isError(n) ? ZSTD_getErrorName(n) : "too short");
        free(out->owned);
        out->owned = NULL;
        return -EINVAL;
    }
    out->bytes = out->owned;
    out->n_bytes = n;
    return 0;
}

/* Appends "sm_90" to a list in `list`, once. */
static void note(char *list, size_t room, const char *kind, unsigned arch)
{
    char word[40], *at;
    snprintf(word, sizeof word, "%s%u", kind, arch);
    size_t n = strlen(list), len = strlen(word);
    for (at = list; (at = strstr(at, word)); at++)
        if ((at == list || !strncmp(at - 2, ", ", 2)) && (!at[len] || at[len] == ','))
            return;
    if (n + len + 4 < room)
        snprintf(list + n, room - n, "%s%s", n ? ", " : "", word);
}

static int pick(const void *image, size_t image_bytes, unsigned kind, unsigned arch, struct gpu_fatbin_code *out, char *why, size_t room)
{
    const unsigned char *p = image, *end, *best = NULL;
    struct header h;
    struct entry e, best_entry = { 0 };
    char seen[160] = "";
    *out = (struct gpu_fatbin_code){ 0 };
    *why = '\0';
    if (image_bytes < sizeof h || !gpu_fatbin_is(image)) {
        snprintf(why, room, "no fat binary");
        return -EINVAL;
    }
    memcpy(&h, p, sizeof h);
    if (h.header_bytes < sizeof h || h.header_bytes > image_bytes || h.content_bytes > image_bytes - h.header_bytes) {
        snprintf(why, room, "a container longer than its image");
        return -EINVAL;
    }
    end = p + h.header_bytes + h.content_bytes;
    for (p += h.header_bytes; p != end; p += e.header_bytes + e.payload_bytes) {
        if ((size_t)(end - p) < sizeof e) {
            snprintf(why, room, "an entry cut short at byte %zu", (size_t)(p - (const unsigned char *)image));
            return -EINVAL;
        }
        memcpy(&e, p, sizeof e);
        if (e.header_bytes < sizeof e || e.header_bytes > (size_t)(end - p) ||
            e.payload_bytes > (size_t)(end - p) - e.header_bytes) {
            snprintf(why, room, "an entry longer than its container at byte %zu", (size_t)(p - (const unsigned char *)image));
            return -EINVAL;
        }
        note(seen, sizeof seen, e.kind == KIND_PTX ? "PTX for sm_" : "sm_", e.arch);
        bool runs = kind == KIND_ELF ? gpu_fatbin_runs(e.arch, arch) : e.arch <= arch;
        if (e.kind == kind && runs && (!best || e.arch > best_entry.arch)) {
            best = p + e.header_bytes;
            best_entry = e;
        }
    }
    if (!best) {
        snprintf(why, room, "no machine code for sm_%u; it has: %s", arch, *seen ? seen : "nothing");
        return -ENOENT;
    }
    out->arch = best_entry.arch;
    if (best_entry.flags & FLAG_ZSTD)
        return unpack(best, &best_entry, out, why, room);
    if (best_entry.flags & FLAG_LZ4) {
        snprintf(why, room, "machine code packed with LZ4, as compilers before CUDA 12.8 do; compile with a newer one, or "
                            "with -no-compress");
        return -ENOTSUP;
    }
    out->bytes = best;
    out->n_bytes = best_entry.payload_bytes;
    return 0;
}

int gpu_fatbin_pick(const void *image, size_t image_bytes, unsigned arch, struct gpu_fatbin_code *out, char *why, size_t room)
{
    return pick(image, image_bytes, KIND_ELF, arch, out, why, room);
}

int gpu_fatbin_pick_text(const void *image, size_t image_bytes, unsigned arch, struct gpu_fatbin_code *out, char *why, size_t room)
{
    return pick(image, image_bytes, KIND_PTX, arch, out, why, room);
}
