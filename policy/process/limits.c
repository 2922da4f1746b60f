/* limits.c: see limits.h. */
#include "policy/process/limits.h"

#include "policy/device.h"
#include "tracer/loader.h"
#include "tracer/machine/conf.h"
#include "tracer/machine/size_text.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 2, TEXT = 512 };

static struct {
    struct conf conf[FILES]; /* the system's file, and the file of REMAT_CONF_ALSO */
    char at_load[64];        /* REMAT_LIMIT when the library was loaded */
    char outer[TEXT];        /* REMAT_LIMIT_MAX when the library was loaded */
} known;

static void copy(char *to, size_t room, const char *name)
{
    const char *v = getenv(name);
    if (v && strlen(v) < room)
        strcpy(to, v);
}

void limits_at_load(void)
{
    copy(known.at_load, sizeof known.at_load, "REMAT_LIMIT");
    copy(known.outer, sizeof known.outer, "REMAT_LIMIT_MAX");
}

static const char *also(void)
{
    const char *v = getenv("REMAT_CONF_ALSO");
    return v && *v ? v : NULL;
}

bool limits_may_hold(void)
{
    return access(REMAT_CONF, F_OK) == 0 || also();
}

static void say_bad(const struct conf *c, const char *path, int rc)
{
    if (rc)
        log_say(SAY_ERROR, "%s: cannot be read (%s): its maxima do not hold; it should be readable by everyone", path, strerror(-rc));
    if (c->n_bad)
        log_say(SAY_ERROR, "%s: the line is left out, the others hold (%u such)", c->bad, c->n_bad);
}

/* Two threads may read the files at once, without the lock: looking up users' names loads libraries (tracer/loader.h). */
void limits_start(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool done;
    struct conf *read = atomic_load(&done) ? NULL : calloc(FILES, sizeof *read);
    int rc[FILES] = {0};
    if (!read)
        return;
    rc[0] = conf_read_own(REMAT_CONF, &read[0]);
    if (also())
        rc[1] = conf_read_own(also(), &read[1]);
    loader_lock(&lock);
    if (!atomic_load(&done)) {
        say_bad(&read[0], REMAT_CONF, rc[0]);
        if (also())
            say_bad(&read[1], also(), rc[1]);
        memcpy(known.conf, read, sizeof known.conf);
    }
    atomic_store(&done, true);
    loader_unlock(&lock);
    free(read);
}

bool limits_hold(void) { return conf_holds(&known.conf[0]) != NULL || conf_holds(&known.conf[1]) != NULL; }

bool limits_bind(void) { return limits_hold() || known.outer[0]; }

const char *limits_holder(void)
{
    for (int i = 0; i < FILES; i++)
        if (conf_holds(&known.conf[i]))
            return conf_holds(&known.conf[i])->from;
    return known.outer[0] ? "the limit of the remat run around this one" : "";
}

/* ---- the smallest of many -------------------------------------------------------------------------------------------- */

struct least {
    uint64_t bytes;
    char from[TEXT];
};

static void lower(struct least *l, uint64_t bytes, const char *from)
{
    if (bytes >= l->bytes)
        return;
    l->bytes = bytes;
    snprintf(l->from, sizeof l->from, "%s", from);
}

/* `list`: limits such as "12G,50%", each of which holds. */
static void lower_by_list(struct least *l, const char *list, uint64_t device_bytes, const char *from)
{
    char one[64];
    while (*list) {
        size_t n = strcspn(list, ",");
        uint64_t bytes;
        double pct;
        if (n && n < sizeof one) {
            memcpy(one, list, n);
            one[n] = '\0';
            if (!size_text_limit(one, &bytes, &pct))
                lower(l, pct > 0 ? (uint64_t)((double)device_bytes * (pct / 100)) : bytes, from);
        }
        list += n + (list[n] == ',');
    }
}

static void lower_by_conf(struct least *l, uint64_t device_bytes)
{
    for (int i = 0; i < FILES; i++) {
        uint64_t bytes;
        const struct conf_rule *r = conf_least(known.conf[i].max, known.conf[i].n_max, device_bytes, &bytes);
        if (r)
            lower(l, bytes, r->from);
        if ((r = conf_least(known.conf[i].total, known.conf[i].n_total, device_bytes, &bytes)))
            lower(l, bytes, r->from);
    }
}

uint64_t limits_total_bytes(uint64_t device_bytes)
{
    uint64_t least = 0, bytes;
    for (int i = 0; i < FILES; i++)
        if (conf_least(known.conf[i].total, known.conf[i].n_total, device_bytes, &bytes) && (!least || bytes < least))
            least = bytes;
    return least;
}

/* The limit that was asked for in REMAT_LIMIT or by a `limit` rule; 0: none. */
static uint64_t asked_bytes(const struct config *c, uint64_t device_bytes)
{
    uint64_t asked = config_limit_bytes(c, device_bytes);
    for (int i = 0; i < FILES && !asked; i++) {
        uint64_t bytes;
        if (conf_least(known.conf[i].limit, known.conf[i].n_limit, device_bytes, &bytes))
            asked = bytes;
    }
    return asked;
}

static void lower_by_all(struct least *l, uint64_t device_bytes)
{
    lower_by_conf(l, device_bytes);
    lower_by_list(l, known.outer, device_bytes, "the limit of the remat run around this one");
    lower_by_list(l, known.at_load, device_bytes, "the limit that the process was started with");
}

uint64_t limits_of_bytes(const struct config *c, uint64_t device_bytes)
{
    struct least l = {.bytes = device_bytes};
    uint64_t asked = asked_bytes(c, device_bytes);
    lower_by_all(&l, device_bytes);
    return asked && asked < l.bytes ? asked : l.bytes;
}

/* ---- the kernel and NVML ----------------------------------------------------------------------------------------------- */

/* The kernel and NVML count the whole group of processes, this process's context included: the room left is what this process may still take. */
struct limits_machine limits_ask_machine(const struct drv *drv, CUdevice dev)
{
    char folder[PATH_MAX], pci[32] = "";
    struct limits_machine m = {.dmem = {.max_bytes = DMEM_NONE, .room_bytes = DMEM_NONE}, .nvml_bytes = DMEM_NONE};
    if (!drv->cuDeviceGetPCIBusId || drv->cuDeviceGetPCIBusId(pci, sizeof pci, dev) != CUDA_SUCCESS || dmem_folder(folder, sizeof folder))
        return m;
    dmem_read(folder, pci, &m.dmem);
    m.soft_bytes = m.dmem.soft_bytes;
    if (m.dmem.max_bytes == DMEM_NONE && !m.soft_bytes && drv->nvml_limits) {
        /* the kernel has no dmem controller: the driver does the counting */
        uint64_t hard, used, soft;
        if (drv->nvml_limits(pci, folder, &soft, &hard, &used) == 0) {
            if (hard != UINT64_MAX)
                m.nvml_bytes = hard > used ? hard - used : 0;
            m.soft_bytes = soft;
        }
    }
    return m;
}

static void lower_by_machine(struct least *l, const struct limits_machine *m)
{
    if (m->dmem.room_bytes != DMEM_NONE)
        lower(l, m->dmem.room_bytes, m->dmem.from);
    if (m->nvml_bytes != DMEM_NONE)
        lower(l, m->nvml_bytes, "the memory limit that NVML tells of");
}

void limits_decide(const struct limits_machine *m, const struct config *c, CUdevice dev, uint64_t device_bytes, struct limits *out)
{
    const uint64_t soft = m->soft_bytes;
    struct least l = {.bytes = device_bytes, .from = "the device's memory"};
    uint64_t asked = asked_bytes(c, device_bytes);
    lower_by_all(&l, device_bytes);
    lower_by_machine(&l, m);
    if (asked > l.bytes && l.bytes < device_bytes)
        log_say(SAY_WARN, "a limit of %s was asked for: %s it is, %s", rt_size(asked).text,
                rt_size(l.bytes).text, l.from);
    out->ceiling_bytes = asked && asked < l.bytes ? asked : l.bytes;
    out->limit_bytes = !asked && soft && soft < out->ceiling_bytes ? soft : out->ceiling_bytes;
    log_say(SAY_INFO, "device %d: limit %s%s%s", (int)dev, rt_size(out->limit_bytes).text,
            out->limit_bytes < device_bytes && out->ceiling_bytes == l.bytes ? ", " : "",
            out->limit_bytes < device_bytes && out->ceiling_bytes == l.bytes ? l.from : "");
}

bool limits_borrow(struct device *d, uint64_t bytes)
{
    enum { STEPS = 16 }; /* large steps: each is a line on stderr */
    uint64_t room = d->mem.ceiling_bytes - d->mem.limit_bytes, step = d->mem.ceiling_bytes / STEPS;
    if (!room || bytes > d->mem.ceiling_bytes)
        return false;
    bytes = (bytes > step ? bytes : step) + d->mem.gran;
    d->mem.limit_bytes += bytes < room ? bytes : room;
    d->mem.plan_limit_bytes = d->mem.limit_bytes;
    log_say(SAY_WARN, "the soft limit gives way: %s are used from now on, of %s at most", rt_size(d->mem.limit_bytes).text,
            rt_size(d->mem.ceiling_bytes).text);
    if (d->status)
        status_store(&d->status->limit_bytes, d->mem.limit_bytes);
    return true;
}
