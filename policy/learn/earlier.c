/* earlier.c: see earlier.h. */
#include "policy/learn/earlier.h"

#include "policy/process/log.h"
#include "tracer/known/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

struct image {
    struct known_code code;
    bool changed;
    UT_hash_handle hh;
};

static struct image *images; /* that were asked about */

static struct image *image_of(struct known_code code)
{
    struct image *m;
    HASH_FIND(hh, images, &code, sizeof code, m);
    return m;
}

/* Into the table. An entry that cannot be read is none. */
static uint32_t read_facts(const struct device *d, struct known *table, struct known_code code, struct known_whys whys)
{
    unsigned char *bytes;
    size_t n;
    uint32_t patterns = 0;
    const int r = cache_get(d->cfg->cache_dir, CACHE_FACTS, code.w, &bytes, &n);
    if (r && r != -ENOENT)
        log_say(SAY_DEBUG, "facts of an earlier run are left out: %s", r == -EBADMSG ? "damaged, or of another version of remat" : strerror(-r));
    if (r)
        return 0;
    if (store_read(table, code, whys, bytes, n, &patterns))
        log_say(SAY_DEBUG, "facts of an earlier run could be read in part");
    free(bytes);
    return patterns;
}

void earlier_facts(struct device *d, struct known *table, struct known_code code, struct known_whys whys)
{
    struct image *m = image_of(code);
    if (m || !d->cfg->cache_dir[0] || !(m = calloc(1, sizeof *m)))
        return;
    m->code = code;
    HASH_ADD(hh, images, code, sizeof m->code, m);
    d->st.facts_earlier += read_facts(d, table, code, whys);
}

void earlier_changed(struct known_code code)
{
    struct image *m = image_of(code);
    if (m)
        m->changed = true;
}

static int write_facts(struct device *d, const struct known *table, struct known_code code, struct known_whys whys)
{
    unsigned char *bytes = NULL, *there;
    size_t n = 0, n_there;
    struct known *both = known_new();
    int r = both ? store_write(table, code, whys, CACHE_ENTRY_MOST, &bytes, &n) : -ENOMEM;
    if (r || !n) {
        known_free(both);
        return r;
    }
    if (!store_read(both, code, whys, bytes, n, NULL) && !cache_get(d->cfg->cache_dir, CACHE_FACTS, code.w, &there, &n_there)) {
        (void)store_read(both, code, whys, there, n_there, NULL);
        free(there);
        free(bytes);
        bytes = NULL;
        r = store_write(both, code, whys, CACHE_ENTRY_MOST, &bytes, &n);
    }
    known_free(both);
    const unsigned long long others = log_own_writes_begin();
    if (!r)
        r = cache_put(d->cfg->cache_dir, CACHE_FACTS, code.w, bytes, n);
    log_own_writes_end(others);
    free(bytes);
    return r;
}

void earlier_keep(struct device *d, const struct known *table, struct known_whys whys)
{
    int lock = -EAGAIN;
    for (struct image *m = images; m; m = m->hh.next) {
        if (!m->changed)
            continue;
        if (lock < 0 && (lock = cache_lock(d->cfg->cache_dir)) < 0) {
            log_say(SAY_DEBUG, "facts are not kept for later runs: %s", strerror(-lock));
            return;
        }
        const int r = write_facts(d, table, m->code, whys);
        if (r)
            log_say(SAY_DEBUG, "facts are not kept for later runs: %s", strerror(-r));
        m->changed = false;
    }
    if (lock >= 0)
        close(lock);
}
