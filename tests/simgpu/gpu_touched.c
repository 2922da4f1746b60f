/* See gpu_touched.h. */
#include "tests/simgpu/gpu_touched.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

enum { MOST_BUFFERS = 512, HELD = 1, LOADED = 1, STORED = 2 };

struct buffer {
    uint64_t start, bytes;
    unsigned char *marks; /* one for each byte: LOADED, STORED */
    unsigned first;       /* the lowest parameter that points there */
};
/* A launch's buffers, as they are when the program launches it: when it runs, the program may have given them back and have others there. */
static struct record {
    struct record *next;
    const void *launch;
    unsigned n;
    struct buffer buffers[];
} *waiting;
static _Thread_local struct record *own; /* of the launch that runs */
static _Thread_local unsigned last;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static uint64_t *seen; /* hashes of launches that have a line; a table with open addresses, 0 is empty */
static size_t n_seen, room;

static void open_file(void)
{
    const char *path = getenv("SIMGPU_TOUCHED");
    if (path && *path && (file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        fprintf(stderr, "simgpu: SIMGPU_TOUCHED=%s cannot be opened\n", path);
}

static void mix(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * 0x9E3779B97F4A7C15ull;
    *h ^= *h >> 29;
}

static bool put(uint64_t h)
{
    size_t i = h & (room - 1);
    for (; seen[i]; i = (i + 1) & (room - 1))
        if (seen[i] == h)
            return false;
    seen[i] = h;
    n_seen++;
    return true;
}

/* True the first time. */
static bool is_new(uint64_t h)
{
    if (2 * (n_seen + 1) > room) {
        uint64_t *old = seen;
        size_t n = room;
        if (!(seen = calloc(n ? 2 * n : 1024, sizeof *seen))) {
            seen = old;
            return false;
        }
        room = n ? 2 * n : 1024;
        n_seen = 0;
        for (size_t i = 0; i < n; i++)
            if (old[i])
                put(old[i]);
        free(old);
    }
    return put(h | HELD);
}

static uint64_t parameter(const struct ptx_launch *l, const struct ptx_kernel *k, unsigned i)
{
    uint64_t v = 0;
    if (k->bytes[i] == sizeof v)
        memcpy(&v, (const char *)l->params + k->offset[i], sizeof v);
    return v;
}

static struct record *taken(const void *launch)
{
    pthread_mutex_lock(&lock);
    struct record **at = &waiting, *r;
    while (*at && (*at)->launch != launch)
        at = &(*at)->next;
    if ((r = *at))
        *at = r->next;
    pthread_mutex_unlock(&lock);
    return r;
}

void gpu_touched_launched(const void *launch, const struct ptx_launch *l)
{
    pthread_once(&once, open_file);
    if (file < 0)
        return;
    free(taken(launch)); /* of one that did not run */
    const struct ptx_kernel *k = ptx_kernel(l->program, l->kernel);
    const unsigned most = k->n_params < MOST_BUFFERS ? k->n_params : MOST_BUFFERS;
    struct record *made = malloc(sizeof *made + most * sizeof *made->buffers);
    if (!made)
        return;
    made->launch = launch;
    made->n = 0;
    gpu_lock();
    for (unsigned i = 0; i < k->n_params && made->n < most; i++) {
        uint64_t at = parameter(l, k, i);
        const gpu_range *r = at && gpu_range_is_device(at) ? gpu_range_find(at) : NULL;
        unsigned same = 0;
        if (!r || at - r->start >= r->bytes)
            continue;
        while (same < made->n && made->buffers[same].start != r->start)
            same++;
        if (same == made->n)
            made->buffers[made->n++] = (struct buffer){ .start = r->start, .bytes = r->bytes, .first = i };
    }
    gpu_unlock();
    pthread_mutex_lock(&lock);
    made->next = waiting;
    waiting = made;
    pthread_mutex_unlock(&lock);
}

static void note(uint64_t at, unsigned bytes, bool stores)
{
    for (unsigned n = 0; n < own->n; n++) {
        const struct buffer *b = &own->buffers[last];
        uint64_t from = at - b->start;
        if (at >= b->start && from < b->bytes) {
            for (uint64_t i = from; i < from + bytes && i < b->bytes; i++)
                b->marks[i] |= stores ? STORED : b->marks[i] & STORED ? 0 : LOADED;
            return;
        }
        last = (last + 1) % own->n;
    }
}

static void drop(void)
{
    for (unsigned i = 0; own && i < own->n; i++)
        free(own->buffers[i].marks);
    free(own);
    own = NULL;
}

bool gpu_touched_begin(const void *launch, struct ptx_launch *l)
{
    if (file < 0)
        return false;
    drop(); /* of a launch that faulted */
    own = taken(launch);
    if (!own || !own->n) {
        drop();
        return false;
    }
    last = 0;
    const struct ptx_kernel *k = ptx_kernel(l->program, l->kernel);
    uint64_t h = 1;
    for (const char *c = k->name; *c; c++)
        mix(&h, (unsigned char)*c);
    for (unsigned i = 0; i < 3; i++)
        mix(&h, l->grid[i]);
    for (unsigned i = 0; i < own->n; i++)
        mix(&h, own->buffers[i].bytes);
    for (unsigned i = 0; i < k->n_params; i++)
        for (unsigned b = 0; b < own->n; b++)
            if (parameter(l, k, i) - own->buffers[b].start < own->buffers[b].bytes)
                mix(&h, (uint64_t)i << 32 | b);
    pthread_mutex_lock(&lock);
    bool record = is_new(h);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < own->n; i++)
        record = (own->buffers[i].marks = record ? calloc(1, own->buffers[i].bytes) : NULL) != NULL;
    if (record)
        l->touched = note;
    else
        drop();
    return record;
}

void gpu_touched_end(const struct ptx_launch *l)
{
    const struct ptx_kernel *k = ptx_kernel(l->program, l->kernel);
    char *line = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&line, &n);
    if (!out) {
        drop();
        return;
    }
    fprintf(out, "%s", k->name);
    for (unsigned b = 0; b < own->n; b++) {
        uint64_t loaded = 0, stored = 0;
        for (uint64_t i = 0; i < own->buffers[b].bytes; i++) {
            loaded += own->buffers[b].marks[i] & LOADED;
            stored += (own->buffers[b].marks[i] & STORED) != 0;
        }
        const char *before = "\t";
        for (unsigned i = own->buffers[b].first; i < k->n_params; i++)
            if (parameter(l, k, i) - own->buffers[b].start < own->buffers[b].bytes) {
                fprintf(out, "%s%u", before, i);
                before = ",";
            }
        fprintf(out, " %llu %llu %llu", (unsigned long long)own->buffers[b].bytes, (unsigned long long)loaded, (unsigned long long)stored);
    }
    fputc('\n', out);
    if (!fclose(out) && write(file, line, n) != (ssize_t)n)
        fprintf(stderr, "simgpu: SIMGPU_TOUCHED: a line cannot be written\n");
    free(line);
    drop();
}
