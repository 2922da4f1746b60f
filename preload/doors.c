/* doors.c: see doors.h. */
#include "preload/doors.h"

#include "preload/rows.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const char *const harmless[] = {
#define G(why, names) names,
    DOORS_HARMLESS(G)
#undef G
};
/* NCCL's calls: each has a second name, pncclX. */
static const char *const harmless_nccl[] = {
#define G(why, names) names,
    DOORS_HARMLESS_NCCL(G)
#undef G
};
static const struct {
    const char *symbol, *why;
} stays[] = {
#define S(symbol, why) {#symbol, why},
    DOORS_STAYS(S)
#undef S
};

enum { N_STAYS = sizeof stays / sizeof stays[0] };

/* True if `rest`, the text behind the name that was asked for, ends a listed name: nothing, or, where a variant will do, "_v2", "_ptsz", "_v2_ptds". */
static bool ends_here(const char *rest, bool any_variant)
{
    if (any_variant && rest[0] == '_' && rest[1] == 'v' && isdigit((unsigned char)rest[2]))
        for (rest += 2; isdigit((unsigned char)*rest);)
            rest++;
    if (any_variant && (!strncmp(rest, "_ptsz", 5) || !strncmp(rest, "_ptds", 5)))
        rest += 5;
    return *rest == 0 || *rest == ' ';
}

static bool lists(const char *const *groups, size_t n, const char *name, bool any_variant)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < n; i++)
        for (const char *at = groups[i]; (at = strstr(at, name)) != NULL; at += length)
            if ((at == groups[i] || at[-1] == ' ') && ends_here(at + length, any_variant))
                return true;
    return false;
}

static enum doors_kind kind_of(const char *name, bool any_variant, const char **why)
{
    *why = NULL;
    const size_t length = strlen(name);
    for (size_t i = 0; length && i < N_STAYS; i++)
        if (!strncmp(stays[i].symbol, name, length) && ends_here(stays[i].symbol + length, any_variant)) {
            *why = stays[i].why;
            return DOORS_MAKE_STAY;
        }
    const bool second = name[0] == 'p';
    if (lists(harmless, sizeof harmless / sizeof harmless[0], name, any_variant) ||
        lists(harmless_nccl, sizeof harmless_nccl / sizeof harmless_nccl[0], name + second, any_variant))
        return DOORS_ARE_HARMLESS;
    return DOORS_ARE_UNKNOWN;
}

enum doors_kind doors_kind_of(const char *symbol, const char **why)
{
    for (int i = 0; i < HOOK_COUNT; i++)
        if (!strcmp(door_rows[i].symbol, symbol)) {
            *why = NULL;
            return DOORS_ARE_HOOKED;
        }
    return kind_of(symbol, false, why);
}

enum doors_kind doors_kind_of_base(const char *base, const char **why) { return kind_of(base, true, why); }
