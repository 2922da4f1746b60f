#include "tests/simcuda/kernels/kname.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

char *kname_demangle(const char *mangled)
{
    return cplus_demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES | DMGL_VERBOSE);
}

static char *copy(const char *from, const char *to)
{
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    char *s = malloc((size_t)(to - from) + 1);
    if (!s) return NULL;
    memcpy(s, from, (size_t)(to - from));
    s[to - from] = 0;
    return s;
}

/* The character at p opens (+1), closes (-1) or does neither. The brackets in operator names count as text: *skip
   characters. */
static int bracket(const char *p, int *skip)
{
    *skip = 1;
    if (*p == 'o' && !strncmp(p, "operator", 8)) {
        static const char *const ops[] = { "()", "<<", ">>", "<=", ">=", "->", "<", ">", "[]" };
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (!strncmp(p + 8, ops[i], strlen(ops[i]))) {
                *skip = 8 + (int)strlen(ops[i]);
                return 0;
            }
    }
    if (*p == '-' && p[1] == '>') {
        *skip = 2;
        return 0;
    }
    if (strchr("<({[", *p) && *p) return 1;
    if (strchr(">)}]", *p) && *p) return -1;
    return 0;
}

int kname_split(const char *text, const char **out, int max)
{
    int n = 0, depth = 0, skip;
    const char *from = text;
    if (!*text) return 0;
    for (const char *p = text;; p += skip) {
        depth += bracket(p, &skip);
        if (*p && !(*p == ',' && depth == 0)) continue;
        if (n < max && (out[n] = copy(from, p))) n++;
        if (!*p) return n;
        from = p + 1;
    }
}

/* From an opening bracket to behind the one that closes it. */
static const char *behind(const char *p)
{
    int depth = 0, skip;
    for (; *p; p += skip) {
        int d = bracket(p, &skip);
        depth += d;
        if (d < 0 && depth == 0) return p + 1;
    }
    return p;
}

bool kname_number(const char *text, long *out)
{
    if (!strcmp(text, "true") || !strcmp(text, "false")) {
        *out = text[0] == 't';
        return true;
    }
    if (*text == '(') text = behind(text);
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text) return false;
    while (*end == 'u' || *end == 'l') end++;
    if (*end) return false;
    *out = v;
    return true;
}

int kname_parse(const char *mangled, struct kname *out)
{
    memset(out, 0, sizeof *out);
    char *text = kname_demangle(mangled);
    if (!text) {
        if (!(text = copy(mangled, mangled + strlen(mangled)))) return -ENOMEM;
    }
    out->text = text;
    const char *name = text, *end = NULL, *args = NULL;
    int depth = 0, skip;
    for (const char *p = text; *p; p += skip) {
        if (depth == 0 && *p == '(' && strncmp(p, "(anonymous namespace)", 21)) {
            end = p;
            break;
        }
        if (depth == 0 && (*p == ' ' || (*p == ':' && p[1] == ':'))) {
            name = p + (*p == ' ' ? 1 : 2);
            args = NULL;
            skip = *p == ' ' ? 1 : 2;
            continue;
        }
        if (depth == 0 && *p == '<') args = p;
        depth += bracket(p, &skip);
    }
    if (!end) end = text + strlen(text);
    if (!(out->base = copy(name, args ? args : end))) return -ENOMEM;
    if (args) {
        char *inner = copy(args + 1, behind(args) - 1);
        if (!inner) return -ENOMEM;
        out->n_args = kname_split(inner, out->arg, KNAME_MAX_ARGS);
        free(inner);
    }
    return 0;
}

/* One component of a functor's name, between "::" and "::". */
static int component(struct kfunctor *f, const char *p, const char *end)
{
    if (!strncmp(p, "(anonymous", 10)) return 0;
    if (!strncmp(p, "{lambda(", 8)) {
        f->is_lambda = true;
        const char *close = behind(p + 7);
        char *inner = copy(p + 8, close - 1);
        if (!inner) return -ENOMEM;
        f->n_params = kname_split(inner, f->param, KNAME_MAX_ARGS);
        free(inner);
        if (f->n_ord < 6) f->ord[f->n_ord++] = *close == '#' ? atoi(close + 1) : 0;
        return 0;
    }
    if (f->is_lambda || !strncmp(p, "operator()", 10)) return 0;
    const char *stop = p;
    while (stop < end && *stop != '<' && *stop != '(') stop++;
    if (!(f->fn = copy(p, stop))) return -ENOMEM;
    f->n_targs = 0;
    if (stop < end && *stop == '<') {
        char *inner = copy(stop + 1, behind(stop) - 1);
        if (!inner) return -ENOMEM;
        f->n_targs = kname_split(inner, f->targ, KNAME_MAX_ARGS);
        free(inner);
    }
    return 0;
}

int kname_functor(const char *text, struct kfunctor *out)
{
    memset(out, 0, sizeof *out);
    int depth = 0, skip, e = 0;
    const char *from = text;
    for (const char *p = text;; p += skip) {
        if (!*p || (depth == 0 && *p == ':' && p[1] == ':')) {
            if ((e = component(out, from, p))) return e;
            if (!*p) break;
            from = p + 2;
            skip = 2;
            continue;
        }
        depth += bracket(p, &skip);
    }
    return out->fn ? 0 : -EINVAL;
}
