/* Reading JSON files that strangers wrote: jansson, plus the place of every complaint.
 *
 * jansson tells line and column of syntax errors but keeps no positions of the values it read. A json_doc keeps
 * the text, and json_fault walks it again, only once something is wrong, to find the line and column of a value
 * given by its path.
 *
 * Threads: a document belongs to one thread at a time.
 * Errors: 0 or a negative errno; one line in err.
 */
#ifndef REMAT_OFFLINE_JSON_READ_H
#define REMAT_OFFLINE_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct json_doc {
    json_t *root;  /* owned by the document */
    char *text;    /* owned */
    size_t len;
    char *name;    /* owned; the path, for messages */
};

/* Read and parse; "-" is standard input. Rejects duplicate keys, trailing text, files over 1 GiB, nesting over jansson's limit.
 * -EINVAL for bad JSON, -ENOENT, -EISDIR, -ENOMEM, ... On failure *doc is zeroed. */
int json_doc_load(const char *path, struct json_doc *doc, char *err, size_t err_len);
int json_doc_parse(const char *name, const char *text, size_t len, struct json_doc *doc, char *err, size_t err_len);
void json_doc_close(struct json_doc *doc);

/* One step of a path into a document: a member (key != NULL) or an array index. */
struct json_step {
    const char *key;
    size_t index;
};

/* Write "FILE:LINE:COL: PATH: what" into err and return -EINVAL. The path is n steps from the root; if it leads
 * nowhere (a missing key) the place is that of the deepest value that exists. fmt as printf. */
int json_fault(const struct json_doc *doc, const struct json_step *path, size_t n, char *err, size_t err_len,
               const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Typed look-ups of obj[key], obj being the value at path. On failure -EINVAL with the place in err. An integer
 * may be written as a real with no fraction below 2^53. `need`: a missing or null member is an error; otherwise
 * *out is left alone. */
int json_get_int(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                 int need, int64_t min, int64_t max, int64_t *out, char *err, size_t err_len);
int json_get_real(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                  int need, double min, double max, double *out, char *err, size_t err_len);
int json_get_string(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n,
                    const char *key, int need, const char **out, char *err, size_t err_len);
int json_get_bool(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n, const char *key,
                  int need, int *out, char *err, size_t err_len);
/* obj[key] as an array (borrowed). */
int json_get_array(const struct json_doc *doc, const json_t *obj, const struct json_step *path, size_t n,
                   const char *key, int need, json_t **out, char *err, size_t err_len);
/* The number v itself as an integer in [min, max]. */
int json_as_int(const json_t *v, int64_t min, int64_t max, int64_t *out);

#endif
