/* cmd_known.c: `remat known`: what runs have found out of kernels, as it lies in the cache: a table, a file to ship, and such a file taken in. */
#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "tracer/known/cache.h"
#include "tracer/known/store.h"
#include "tracer/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const off_t SHIPPED_MOST = 256ll << 20;

/* Which of them it is makes no difference here, as long as each is another text. */
static const char *const WHYS[STORE_WHYS] = {"a", "b"};
static const struct known_whys whys = {WHYS, STORE_WHYS};

static const char *folder(char *to, size_t room)
{
    const char *own = getenv("REMAT_CACHE");
    cache_folder(to, room);
    if (own && *own && strcmp(own, "off") != 0)
        snprintf(to, room, "%s", own);
    return to;
}

static struct known_code code_of_key(const uint64_t key[2]) { return (struct known_code){{key[0], key[1]}}; }

/* The facts of an entry in a table of their own. NULL: they are damaged, or memory is short. */
static struct known *read_facts(const uint64_t key[2], const unsigned char *bytes, size_t n)
{
    struct known *k = known_new();
    if (!k || !store_read(k, code_of_key(key), whys, bytes, n, NULL))
        return k;
    known_free(k);
    return NULL;
}

/* ---- list ------------------------------------------------------------------------------------------------------------- */

struct list {
    const char *folder;
    int json;
    size_t n;
};

static int list_entry(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s)
{
    struct list *l = arg;
    unsigned char *content;
    size_t n;
    char size[32], day[32] = "";
    const time_t at = (time_t)used_s;
    struct tm tm;
    const int r = cache_get(l->folder, sort, key, &content, &n);
    struct known *k = !r && sort == CACHE_FACTS ? read_facts(key, content, n) : NULL;
    const char *is = r || (sort == CACHE_FACTS && !k) ? "not readable here" : "";
    if (localtime_r(&at, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    if (l->json)
        printf("%s{\"sort\": \"%s\", \"key\": \"%016" PRIx64 "%016" PRIx64 "\", \"bytes\": %" PRIu64 ", \"used_unix_s\": %" PRId64
               ", \"readable\": %s, \"kernels\": %u, \"patterns\": %u}",
               l->n ? ", " : "", cache_sort_names[sort], key[0], key[1], bytes, used_s, *is ? "false" : "true", k ? known_kernels(k) : 0, k ? known_patterns(k) : 0);
    else if (k)
        printf("%-9s %016" PRIx64 "%016" PRIx64 "  %11s  %s  %u kernels, %u ways to launch them\n", cache_sort_names[sort], key[0], key[1],
               cli_bytes((int64_t)bytes, size, sizeof size), day, known_kernels(k), known_patterns(k));
    else
        printf("%-9s %016" PRIx64 "%016" PRIx64 "  %11s  %s  %s\n", cache_sort_names[sort], key[0], key[1], cli_bytes((int64_t)bytes, size, sizeof size), day, is);
    l->n++;
    known_free(k);
    if (!r)
        free(content);
    return 0;
}

static int list(const char *where, int json)
{
    struct list l = {.folder = where, .json = json};
    if (json)
        printf("{\"folder\": "), cli_json(where), printf(", \"entries\": [");
    const int r = cache_each(where, list_entry, &l);
    if (json)
        puts("]}");
    else if (!r && !l.n)
        printf("nothing is known of kernels in %s\n", where);
    return r ? cli_fail("known: %s: %s", where, strerror(-r)) : CLI_OK;
}

/* ---- export ----------------------------------------------------------------------------------------------------------- */

struct ship {
    const char *folder;
    FILE *to;
    size_t n;
};

static int ship_entry(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s)
{
    struct ship *s = arg;
    unsigned char *content, *file;
    size_t n, file_bytes;
    (void)bytes, (void)used_s;
    if (sort != CACHE_FACTS || cache_get(s->folder, sort, key, &content, &n))
        return 0;
    int r = cache_seal(sort, key, content, n, &file, &file_bytes);
    if (!r) {
        r = fwrite(file, 1, file_bytes, s->to) == file_bytes ? 0 : -EIO;
        free(file);
        s->n++;
    }
    free(content);
    return r;
}

static int export(const char *where, const char *path)
{
    struct output o;
    char err[512];
    if (output_open(&o, path, 0, err, sizeof err))
        return cli_fail("known: %s", err);
    struct ship s = {.folder = where, .to = o.f};
    const int r = cache_each(where, ship_entry, &s);
    if (r || !s.n) {
        output_abandon(&o);
        return r ? cli_fail("known: %s: %s", where, strerror(-r)) : cli_fail("known: nothing is known of kernels in %s", where);
    }
    if (output_commit(&o, err, sizeof err))
        return cli_fail("known: %s", err);
    fprintf(stderr, "remat: known: facts of %zu images\n", s.n);
    return CLI_OK;
}

/* ---- import ----------------------------------------------------------------------------------------------------------- */

/* To what the cache has of that image. */
static int take_in(const char *where, const uint64_t key[2], const unsigned char *bytes, size_t n)
{
    unsigned char *there, *both;
    size_t n_there, n_both;
    struct known *k = read_facts(key, bytes, n);
    if (!k)
        return -EBADMSG;
    if (!cache_get(where, CACHE_FACTS, key, &there, &n_there)) {
        (void)store_read(k, code_of_key(key), whys, there, n_there, NULL);
        free(there);
    }
    int r = store_write(k, code_of_key(key), whys, CACHE_ENTRY_MOST, &both, &n_both);
    known_free(k);
    if (r)
        return r;
    r = n_both ? cache_put(where, CACHE_FACTS, key, both, n_both) : 0;
    free(both);
    return r;
}

static unsigned char *whole_file(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "re");
    unsigned char *all = f && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_size <= SHIPPED_MOST ? malloc((size_t)st.st_size + 1) : NULL;
    *n = all ? fread(all, 1, (size_t)st.st_size, f) : 0;
    if (f)
        fclose(f);
    return all;
}

static int import(const char *where, const char *path)
{
    size_t n, at = 0, images = 0;
    unsigned char *all = whole_file(path, &n);
    if (!all)
        return cli_fail("known: %s is no file that can be read whole", path);
    const int lock = cache_lock(where);
    int rc = lock < 0 ? cli_fail("known: %s: %s", where, lock == -EAGAIN ? "a program keeps facts there at this moment: try again" : strerror(-lock)) : CLI_OK;
    while (rc == CLI_OK && at < n) {
        enum cache_sort sort;
        uint64_t key[2];
        const unsigned char *bytes;
        size_t content, whole;
        int r = cache_sealed(all + at, n - at, &sort, key, &bytes, &content, &whole);
        if (!r)
            r = sort == CACHE_FACTS ? take_in(where, key, bytes, content) : -EBADMSG;
        if (r == -EBADMSG)
            rc = cli_bad("known: %s: byte %zu: no facts of this version of remat, or damaged", path, at);
        else if (r)
            rc = cli_fail("known: %s: %s", where, strerror(-r));
        else
            images++, at += whole;
    }
    if (lock >= 0)
        close(lock);
    free(all);
    if (rc == CLI_OK)
        fprintf(stderr, "remat: known: facts of %zu images\n", images);
    return rc;
}

int cmd_known(int argc, char **argv)
{
    int json = 0;
    const char *words[2];
    const struct option_bind binds[] = {{"json", &json}, {0}};
    char where[PATH_MAX];
    size_t n;
    int rc = options_parse(argc, argv, binds, words, 2, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (!*folder(where, sizeof where))
        return cli_fail("known: there is no folder for it: set REMAT_CACHE, XDG_CACHE_HOME or HOME");
    if (n == 1 && !strcmp(words[0], "list"))
        return list(where, json);
    if (n == 2 && !strcmp(words[0], "export"))
        return export(where, words[1]);
    if (n == 2 && !strcmp(words[0], "import"))
        return import(where, words[1]);
    return cli_bad("known: list, export FILE or import FILE (remat known --help)");
}
