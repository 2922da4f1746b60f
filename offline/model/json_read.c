#include "offline/model/json_read.h"
#include "offline/model/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_MAX_BYTES (1L << 30)

/* Messages are one line of printable text, whatever the file held. */
static void json_one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s == 0x7f)
            *s = ' ';
}

static int json_say(char *err, size_t err_len, int code, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int json_say(char *err, size_t err_len, int code, const char *fmt, ...)
{
    va_list ap;

    if (err_len) {
        va_start(ap, fmt);
        vsnprintf(err, err_len, fmt, ap);
        va_end(ap);
        json_one_line(err);
    }
    return code;
}

/* The command line reads compressed files; the library, which is in the program's process, starts nothing for a file's sake, and has no unpack.c. */
#pragma weak unpack_needs
#pragma weak unpack

/* The text of a file that was compressed, in the place of its bytes. */
static int json_unpacked(const char *path, char **text, size_t *len, char *err, size_t err_len)
{
    const char *with = unpack_needs ? unpack_needs(*text, *len) : NULL;
    char *plain;
    size_t n;
    if (!*len || !with) {
        if (*len)
            return 0;
        free(*text);
        return json_say(err, err_len, -EINVAL, "%s:1:1: is empty", path);
    }
    const int rc = unpack(with, *text, *len, JSON_MAX_BYTES, &plain, &n);
    free(*text);
    *text = plain;
    *len = n;
    return !rc              ? 0
           : rc == -ENOENT  ? json_say(err, err_len, rc, "%s: is compressed, and there is no %s to read it with: install it, or uncompress the file", path, with)
           : rc == -EFBIG   ? json_say(err, err_len, rc, "%s: holds more than 1 GiB", path)
           : rc == -ENOMEM  ? json_say(err, err_len, rc, "%s: not enough memory to read it", path)
                            : json_say(err, err_len, rc, "%s: is compressed, and %s cannot read it: damaged?", path, with);
}

static int json_slurp(const char *path, char **text, size_t *len, char *err, size_t err_len)
{
    struct stat st;
    size_t cap, n = 0;
    char *buf;
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), e;

    path = strcmp(path, "-") ? path : "standard input";

    if (fd < 0) {
        e = errno;
        return json_say(err, err_len, -e, "%s: cannot open: %s", path, strerror(e));
    }
    if (fstat(fd, &st) || S_ISDIR(st.st_mode)) {
        close(fd);
        return json_say(err, err_len, -EISDIR, "%s: not a file", path);
    }
    if (st.st_size > JSON_MAX_BYTES) {
        close(fd);
        return json_say(err, err_len, -EFBIG, "%s: larger than 1 GiB", path);
    }
    cap = (size_t)st.st_size + 4096;
    buf = malloc(cap);
    if (!buf)
        goto no_memory;
    for (;;) {
        ssize_t k;

        if (n == cap) {
            char *more = cap < (size_t)JSON_MAX_BYTES ? realloc(buf, cap * 2) : NULL;

            if (!more)
                goto no_memory;
            buf = more;
            cap *= 2;
        }
        k = read(fd, buf + n, cap - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            e = errno;
            close(fd);
            free(buf);
            return json_say(err, err_len, -e, "%s: cannot read: %s", path, strerror(e));
        }
        if (k == 0)
            break;
        n += (size_t)k;
    }
    close(fd);
    *text = buf;
    *len = n;
    return json_unpacked(path, text, len, err, err_len);
no_memory:
    close(fd);
    free(buf);
    return json_say(err, err_len, -ENOMEM, "%s: not enough memory to read it", path);
}

/* Takes over text. */
static int json_parse_owned(const char *name, char *text, size_t len, struct json_doc *doc, char *err, size_t err_len)
{
    json_error_t je = {0}; /* jansson leaves it as it is where its first allocation fails */

    memset(doc, 0, sizeof(*doc));
    doc->text = text;
    doc->len = len;
    doc->name = strdup(name);
    if (!doc->name) {
        json_doc_close(doc);
        return json_say(err, err_len, -ENOMEM, "%s: not enough memory", name);
    }
    doc->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
    if (!doc->root) {
        int code = !je.text[0] || json_error_code(&je) == json_error_out_of_memory ? -ENOMEM : -EINVAL;

        json_doc_close(doc);
        if (code == -ENOMEM)
            return json_say(err, err_len, code, "%s: not enough memory", name);
        return json_say(err, err_len, code, "%s:%d:%d: %s", name, je.line, je.column, je.text);
    }
    return 0;
}

int json_doc_load(const char *path, struct json_doc *doc, char *err, size_t err_len)
{
    char *text = NULL;
    size_t len = 0;
    int rc;

    memset(doc, 0, sizeof(*doc));
    rc = json_slurp(path, &text, &len, err, err_len);
    return rc ? rc : json_parse_owned(strcmp(path, "-") ? path : "standard input", text, len, doc, err, err_len);
}

int json_doc_parse(const char *name, const char *text, size_t len, struct json_doc *doc, char *err, size_t err_len)
{
    char *copy = malloc(len + 1);

    memset(doc, 0, sizeof(*doc));
    if (!copy)
        return json_say(err, err_len, -ENOMEM, "%s: not enough memory", name);
    if (len)
        memcpy(copy, text, len);
    copy[len] = 0;
    return json_parse_owned(name, copy, len, doc, err, err_len);
}

void json_doc_close(struct json_doc *doc)
{
    if (doc->root)
        json_decref(doc->root);
    free(doc->text);
    free(doc->name);
    memset(doc, 0, sizeof(*doc));
}

/* ---- finding the place of a value: a second, lenient walk over text that jansson accepted ---------------- */

struct json_walk {
    const char *p, *end;
};

static void json_walk_space(struct json_walk *w)
{
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r'))
        w->p++;
}

static void json_walk_string(struct json_walk *w)
{
    if (w->p < w->end)
        w->p++;
    while (w->p < w->end && *w->p != '"')
        w->p += *w->p == '\\' && w->end - w->p > 1 ? 2 : 1;
    if (w->p < w->end)
        w->p++;
}

/* Skips one value without recursion: brackets are counted, strings jumped over. */
static void json_walk_skip(struct json_walk *w)
{
    long depth = 0;

    json_walk_space(w);
    while (w->p < w->end) {
        char c = *w->p;

        if (c == '"') {
            json_walk_string(w);
            if (!depth)
                return;
        } else if (c == '{' || c == '[') {
            depth++;
            w->p++;
        } else if (c == '}' || c == ']') {
            if (!depth)
                return;
            w->p++;
            if (!--depth)
                return;
        } else if (c == ',' && !depth) {
            return;
        } else {
            w->p++;
        }
    }
}

/* From the start of an object or array to the start of its member; 0 if there is none. */
static int json_walk_into(struct json_walk *w, const struct json_step *step)
{
    size_t i = 0;

    json_walk_space(w);
    if (w->p >= w->end || *w->p != (step->key ? '{' : '['))
        return 0;
    w->p++;
    for (;;) {
        json_walk_space(w);
        if (w->p >= w->end || *w->p == '}' || *w->p == ']')
            return 0;
        if (step->key) {
            const char *k = w->p + 1;
            size_t n = strlen(step->key);
            int same;

            json_walk_string(w);
            same = (size_t)(w->p - k) == n + 1 && !memcmp(k, step->key, n);
            json_walk_space(w);
            if (w->p < w->end && *w->p == ':')
                w->p++;
            json_walk_space(w);
            if (same)
                return 1;
        } else if (i++ == step->index) {
            return 1;
        }
        json_walk_skip(w);
        json_walk_space(w);
        if (w->p < w->end && *w->p == ',')
            w->p++;
    }
}

int json_fault(const struct json_doc *doc, const struct json_step *path, size_t n, char *err, size_t err_len,
               const char *fmt, ...)
{
    struct json_walk w = {doc->text, doc->text + doc->len};
    const char *at, *p, *line_start = doc->text;
    char where[160], what[256];
    size_t i, used = 0;
    long line = 1;
    va_list ap;

    json_walk_space(&w);
    at = w.p;
    for (i = 0; i < n && json_walk_into(&w, &path[i]); i++)
        at = w.p;
    for (p = doc->text; p < at; p++)
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    where[0] = 0;
    for (i = 0; i < n && used < sizeof(where); i++) {
        int k = path[i].key ? snprintf(where + used, sizeof(where) - used, "%s%s", used ? "." : "", path[i].key)
                            : snprintf(where + used, sizeof(where) - used, "[%zu]", path[i].index);

        used += k > 0 ? (size_t)k : 0;
    }
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return json_say(err, err_len, -EINVAL, "%s:%ld:%ld: %s%s%s", doc->name, line, (long)(at - line_start) + 1, where,
                    where[0] ? ": " : "", what);
}

/* ---- typed look-ups ----------------------------------------------------------------------------------------- */

#define JSON_MAX_DEPTH 8

/* The fault of obj[key]: the path grows by one step. */
#define JSON_FAULT_AT(...)                                                                                            \
    do {                                                                                                              \
        struct json_step longer[JSON_MAX_DEPTH + 1];                                                                  \
        size_t m = n < JSON_MAX_DEPTH ? n : JSON_MAX_DEPTH;                                                           \
        if (m)                                                                                                        \
            memcpy(longer, path, m * sizeof(*path));                                                                  \
        longer[m].key = key;                                                                                          \
        longer[m].index = 0;                                                                                          \
        return json_fault(doc, longer, m + 1, err, err_len, __VA_ARGS__);                                             \
    } while (0)

#define JSON_NEED(v)                                                                                                  \
    do {                                                                                                              \
        if (!(v) || json_is_null(v)) {                                                                                \
            if (!need)                                                                                                \
                return 0;                                                                                             \
            JSON_FAULT_AT("missing");                                                                                 \
        }                                                                                                             \
    } while (0)

int json_as_int(const json_t *v, int64_t min, int64_t max, int64_t *out)
{
    int64_t x;

    if (json_is_integer(v)) {
        x = json_integer_value(v);
    } else if (json_is_real(v)) {
        double d = json_real_value(v);

        if (!(fabs(d) <= 9007199254740992.0) || d != floor(d))
            return -EINVAL;
        x = (int64_t)d;
    } else {
        return -EINVAL;
    }
    if (x < min || x > max)
        return -ERANGE;
    *out = x;
    return 0;
}

int json_get_int(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                 int need, int64_t min, int64_t max, int64_t *out, char *err, size_t err_len)
{
    const json_t *v = json_object_get(obj, key);
    int rc;

    JSON_NEED(v);
    rc = json_as_int(v, min, max, out);
    if (rc == -ERANGE)
        JSON_FAULT_AT("must be between %lld and %lld", (long long)min, (long long)max);
    if (rc)
        JSON_FAULT_AT("must be a whole number");
    return 0;
}

int json_get_real(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                  int need, double min, double max, double *out, char *err, size_t err_len)
{
    const json_t *v = json_object_get(obj, key);
    double d;

    JSON_NEED(v);
    if (!json_is_number(v))
        JSON_FAULT_AT("must be a number");
    d = json_number_value(v);
    if (!(d >= min && d <= max))
        JSON_FAULT_AT("must be between %g and %g", min, max);
    *out = d;
    return 0;
}

int json_get_string(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n,
                    const char *key, int need, const char **out, char *err, size_t err_len)
{
    const json_t *v = json_object_get(obj, key);

    JSON_NEED(v);
    if (!json_is_string(v))
        JSON_FAULT_AT("must be a string");
    *out = json_string_value(v);
    return 0;
}

int json_get_bool(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                  int need, int *out, char *err, size_t err_len)
{
    const json_t *v = json_object_get(obj, key);

    JSON_NEED(v);
    if (!json_is_boolean(v))
        JSON_FAULT_AT("must be true or false");
    *out = json_is_true(v);
    return 0;
}

int json_get_array(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n,
                   const char *key, int need, json_t **out, char *err, size_t err_len)
{
    json_t *v = json_object_get(obj, key);

    JSON_NEED(v);
    if (!json_is_array(v))
        JSON_FAULT_AT("must be an array");
    *out = v;
    return 0;
}
