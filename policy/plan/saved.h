/* saved.h: values set aside on the host: rebuilt values must equal them, or they come back after a rebuild.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SAVED_H
#define REMAT_POLICY_SAVED_H

#include "policy/plan/cursor.h"

struct saved_value { /* a value set aside on the host */
    int32_t buf, version;
    struct host_block *block;
    uint64_t hash[2]; /* of the whole value; valid where `hashed` */
    bool hashed;
    struct saved_value *next;
};

int saved_put(struct device *d, int32_t buf, int32_t version, struct slot *s);
struct saved_value *saved_find(struct device *d, int32_t buf, int32_t version);
/* Takes the value out and returns its block, which the caller owns then; NULL: the value was not set aside. */
struct host_block *saved_take(struct device *d, int32_t buf, int32_t version);
void saved_clear(struct device *d);
int saved_restore(struct device *d, const struct saved_value *v, struct slot *s);

#endif
