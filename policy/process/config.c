/* config.c: see config.h. */
#include "policy/process/config.h"
#include "tracer/known/cache.h"

#include "tracer/machine/size_text.h"

#include <stdio.h>

static const char *const policy_words[] = {"auto", "plan", "dtr", "swap", "off"};
static const char *const verify_words[] = {"off", "sample", "always"};
static const char *const known_words[] = {"off", "measure", "use"};

static int word_index(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return (int)i;
    return -EINVAL;
}

int config_policy_of(const char *word)
{
    return word_index(word, policy_words, sizeof policy_words / sizeof policy_words[0]);
}

int config_verify_of(const char *word)
{
    return word_index(word, verify_words, sizeof verify_words / sizeof verify_words[0]);
}

const char *config_policy_name(enum config_policy p)
{
    return policy_words[p];
}

/* An empty variable counts as absent: `VAR= command` is how shells unset one for a single command. */
static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static int copy_text(char *to, size_t room, const char *name, char *err, size_t err_bytes)
{
    const char *v = env(name);
    if (!v)
        return 0;
    if (strlen(v) >= room) {
        snprintf(err, err_bytes, "%s is longer than %zu bytes", name, room - 1);
        return -EINVAL;
    }
    strcpy(to, v);
    return 0;
}

static int read_limit(struct config *c, char *err, size_t err_bytes)
{
    const char *v = env("REMAT_LIMIT");
    if (!v)
        return 0;
    int rc = size_text_limit(v, &c->limit_bytes, &c->limit_pct);
    if (rc) {
        snprintf(err, err_bytes, "REMAT_LIMIT='%s' is %s; give bytes, 12G, 1536MiB or 50%%", v,
                 rc == -ERANGE ? "out of range" : "not a size");
        return -EINVAL;
    }
    return 0;
}

static int read_group(struct config *c, char *err, size_t err_bytes)
{
    const char *limit = env("REMAT_GROUP_LIMIT"), *own = env("REMAT_GUARANTEE");
    if (limit && size_text_limit(limit, &c->group_limit_bytes, &c->group_limit_pct)) {
        snprintf(err, err_bytes, "REMAT_GROUP_LIMIT='%s' is not a size; give bytes, 40G or 50%%", limit);
        return -EINVAL;
    }
    if (own && size_text_bytes(own, &c->guarantee_bytes)) {
        snprintf(err, err_bytes, "REMAT_GUARANTEE='%s' is not a size; give bytes, 12G or 1536MiB", own);
        return -EINVAL;
    }
    c->guarantee_given = own != NULL;
    return copy_text(c->group, sizeof c->group, "REMAT_GROUP", err, err_bytes);
}

static int read_words(struct config *c, char *err, size_t err_bytes)
{
    const char *v = env("REMAT_POLICY");
    if (v) {
        int i = config_policy_of(v);
        if (i < 0) {
            snprintf(err, err_bytes, "REMAT_POLICY='%s' is none of auto, plan, dtr, swap, off", v);
            return -EINVAL;
        }
        c->policy = (enum config_policy)i;
    }
    if ((v = env("REMAT_VERIFY"))) {
        int i = config_verify_of(v);
        if (i < 0) {
            snprintf(err, err_bytes, "REMAT_VERIFY='%s' is none of off, sample, always", v);
            return -EINVAL;
        }
        c->verify = (enum config_verify)i;
    }
    if ((v = env("REMAT_KNOWN"))) {
        int i = word_index(v, known_words, sizeof known_words / sizeof known_words[0]);
        if (i < 0) {
            snprintf(err, err_bytes, "REMAT_KNOWN='%s' is none of off, measure, use", v);
            return -EINVAL;
        }
        c->known = (enum config_known)i;
    }
    const struct {
        const char *name;
        bool *to;
    } flags[] = {{"REMAT_NVTX", &c->nvtx}, {"REMAT_QUIET", &c->quiet}, {"REMAT_PLAN_ONLY", &c->plan_only}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!(v = env(flags[i].name)))
            continue;
        if (strcmp(v, "0") != 0 && strcmp(v, "1") != 0) {
            snprintf(err, err_bytes, "%s='%s' is neither 0 nor 1", flags[i].name, v);
            return -EINVAL;
        }
        *flags[i].to = *v == '1';
    }
    if ((v = env("REMAT_REHEARSE"))) {
        if (strcmp(v, "mapped") != 0 && strcmp(v, "unmapped") != 0) {
            snprintf(err, err_bytes, "REMAT_REHEARSE='%s' is neither mapped nor unmapped", v);
            return -EINVAL;
        }
        c->rehearse_unmapped = strcmp(v, "unmapped") == 0;
    }
    if ((v = env("REMAT_MODE"))) {
        if (strcmp(v, "run") != 0 && strcmp(v, "trace") != 0) {
            snprintf(err, err_bytes, "REMAT_MODE='%s' is neither run nor trace", v);
            return -EINVAL;
        }
        c->trace_mode = strcmp(v, "trace") == 0;
    }
    return 0;
}

static int read_numbers(struct config *c, char *err, size_t err_bytes)
{
    const char *v = env("REMAT_HOST_SWAP");
    if (v && size_text_bytes(v, &c->host_swap_bytes)) {
        snprintf(err, err_bytes, "REMAT_HOST_SWAP='%s' is not a size; give bytes, 12G or 1536MiB", v);
        return -EINVAL;
    }
    if ((v = env("REMAT_ITERATIONS"))) {
        char *end;
        errno = 0;
        long n = strtol(v, &end, 10);
        if (errno || end == v || *end || n < 1 || n > 1000000) {
            snprintf(err, err_bytes, "REMAT_ITERATIONS='%s' is not a number from 1 to 1000000", v);
            return -EINVAL;
        }
        c->trace_iterations = (int)n;
    }
    return 0;
}

/* The name of one of remat's solvers is a short word; `remat plan` knows the list. */
static int read_solver(struct config *c, char *err, size_t err_bytes)
{
    enum { NAME_MOST = 31 };
    static const char own[] = "exec:"; /* a command of the user's: any text */
    const char *v = env("REMAT_SOLVER");
    if (v && strncmp(v, own, sizeof own - 1) != 0 && (strlen(v) > NAME_MOST || v[strspn(v, "abcdefghijklmnopqrstuvwxyz0123456789-")])) {
        snprintf(err, err_bytes, "REMAT_SOLVER is neither a solver's name (remat plan --help lists them) nor exec:CMD");
        return -EINVAL;
    }
    return copy_text(c->solver, sizeof c->solver, "REMAT_SOLVER", err, err_bytes);
}

static int read_texts(struct config *c, char *err, size_t err_bytes)
{
    int rc = read_solver(c, err, err_bytes);
    if (!rc)
        rc = copy_text(c->plan_path, sizeof c->plan_path, "REMAT_PLAN", err, err_bytes);
    if (!rc)
        rc = copy_text(c->trace_out, sizeof c->trace_out, "REMAT_TRACE_OUT", err, err_bytes);
    if (!rc)
        rc = copy_text(c->stats, sizeof c->stats, "REMAT_STATS", err, err_bytes);
    if (!rc)
        rc = copy_text(c->remat_bin, sizeof c->remat_bin, "REMAT_BIN", err, err_bytes);
    if (!rc)
        rc = copy_text(c->cache_dir, sizeof c->cache_dir, "REMAT_CACHE", err, err_bytes);
    return rc;
}

int config_read(struct config *c, char *err, size_t err_bytes)
{
    /* the first error is told; the parts after it are read all the same */
    static int (*const parts[])(struct config *, char *, size_t) = {read_limit, read_group, read_words, read_numbers, read_texts};
    char more[256];
    int rc = 0;
    memset(c, 0, sizeof *c);
    strcpy(c->solver, "best");
    c->verify = VERIFY_SAMPLE;
    c->known = FACTS_USE;
    c->trace_iterations = 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int r = parts[i](c, rc ? more : err, rc ? sizeof more : err_bytes);
        rc = rc ? rc : r;
    }
    if (!strcmp(c->cache_dir, "off"))
        c->cache_dir[0] = '\0';
    else if (!c->cache_dir[0])
        cache_folder(c->cache_dir, sizeof c->cache_dir);
    return rc;
}

uint64_t config_limit_bytes(const struct config *c, uint64_t device_bytes)
{
    if (c->limit_pct > 0)
        return (uint64_t)((double)device_bytes * (c->limit_pct / 100));
    return c->limit_bytes;
}
