/* alloc_conf.c: see alloc_conf.h. */
#include "tracer/machine/alloc_conf.h"

#include <errno.h>
#include <string.h>

#define ASYNC "backend:cudaMallocAsync"

const char *const alloc_conf_names[ALLOC_CONF_NAMES] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

/* Settings of PyTorch's own caching allocator: the stream-ordered backend does not know them and says so, or fails. */
static const char *const native_only[] = {
    "backend", "expandable_segments", "max_split_size_mb", "max_non_split_rounding_mb", "roundup_power2_divisions",
    "roundup_bypass_threshold_mb", "garbage_collection_threshold", "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc", "graph_capture_record_stream_reuse", "large_segment_size_mb",
};

enum alloc_conf alloc_conf_of(const char *word)
{
    if (!word)
        return ALLOC_CONF_NONE;
    return !strcmp(word, "async") ? ALLOC_CONF_ASYNC : !strcmp(word, "each") ? ALLOC_CONF_EACH : ALLOC_CONF_NONE;
}

/* The end of the setting that begins at s: the next comma outside brackets, or the end. */
static size_t setting_length(const char *s)
{
    int depth = 0;
    size_t n = 0;
    for (; s[n] && (depth > 0 || s[n] != ','); n++)
        depth += (s[n] == '[') - (s[n] == ']');
    return n;
}

static bool has_key(const char *s, size_t n, const char *key)
{
    const char *colon = memchr(s, ':', n);
    size_t length = colon ? (size_t)(colon - s) : n;
    while (length && (s[length - 1] == ' ' || s[length - 1] == '\t'))
        length--;
    return strlen(key) == length && memcmp(s, key, length) == 0;
}

/* What the allocator that `how` needs cannot have. */
static bool is_foreign(enum alloc_conf how, const char *s, size_t n)
{
    if (how == ALLOC_CONF_EACH)
        return has_key(s, n, "backend");
    for (size_t i = 0; i < sizeof native_only / sizeof native_only[0]; i++)
        if (has_key(s, n, native_only[i]))
            return true;
    return false;
}

/* The backend that is chosen anyway: nothing to tell of. */
static bool is_chosen(enum alloc_conf how, const char *s, size_t n)
{
    const char *value = how == ALLOC_CONF_EACH ? "native" : "cudaMallocAsync";
    const char *colon = memchr(s, ':', n);
    if (!colon || !has_key(s, n, "backend"))
        return false;
    colon++;
    while (colon < s + n && (*colon == ' ' || *colon == '\t'))
        colon++;
    return strlen(value) == (size_t)(s + n - colon) && !memcmp(colon, value, strlen(value));
}

static int append(char *to, size_t room, const char *s, size_t n)
{
    size_t used = strlen(to);
    if (used + n + 2 > room)
        return -ENAMETOOLONG;
    if (used)
        to[used++] = ',';
    memcpy(to + used, s, n);
    to[used + n] = '\0';
    return 0;
}

int alloc_conf_merge(enum alloc_conf how, const char *user, char *out, size_t room, char *dropped, size_t dropped_room)
{
    int rc = 0;
    if (!room || !dropped_room)
        return -ENAMETOOLONG;
    *out = *dropped = '\0';
    if (how == ALLOC_CONF_ASYNC)
        rc = append(out, room, ASYNC, strlen(ASYNC));
    while (!rc && user && *user) {
        user += strspn(user, ", \t");
        size_t whole = setting_length(user), n = whole;
        while (n && (user[n - 1] == ' ' || user[n - 1] == '\t'))
            n--;
        if (n && is_foreign(how, user, n))
            rc = is_chosen(how, user, n) ? 0 : append(dropped, dropped_room, user, n);
        else if (n)
            rc = append(out, room, user, n);
        user += whole;
    }
    return rc;
}
