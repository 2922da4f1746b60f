/* torch_env.c: see torch_env.h. */
#include "preload/torch_env.h"

#include "preload/door.h"
#include "preload/libc_dlsym.h"

#include "policy/process/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD = 512 };

static struct {
    atomic_int how; /* enum alloc_conf */
    atomic_bool is_used; /* the driver is in use: settings that are left out are reported at once */
    char dropped[TOLD];  /* the settings left out last, not yet reported */
    const char *of;      /* the variable that `dropped` was left out of */
    char said[TOLD];
} torch_env;

/* Calls the C library's function, found at the first call: programs set variables before any constructor of remat's. */
#define NEXT(name)                                                                                                     \
    static _Atomic(void *) found_;                                                                                     \
    void *next_ = atomic_load(&found_);                                                                                \
    if (!next_)                                                                                                        \
        atomic_store(&found_, next_ = libc_dlsym(RTLD_NEXT, #name));                                                   \
    if (!next_) {                                                                                                      \
        errno = ENOSYS;                                                                                                \
        return -1;                                                                                                     \
    }                                                                                                                  \
    return ((__typeof__(&name))next_)

static int next_setenv(const char *name, const char *value, int over) { NEXT(setenv)(name, value, over); }
static int next_unsetenv(const char *name) { NEXT(unsetenv)(name); }
static int next_putenv(char *text) { NEXT(putenv)(text); }

enum alloc_conf torch_env_allocator(void) { return (enum alloc_conf)atomic_load_explicit(&torch_env.how, memory_order_relaxed); }

static void say(void)
{
    if (strcmp(torch_env.dropped, torch_env.said) != 0) /* PyTorch reads settings more than once */
        log_say(SAY_WARN, "%s: left out %s, which the program has set: the allocator that remat needs cannot have it (--allocator; --policy off leaves it alone)",
                torch_env.of, torch_env.dropped);
    strcpy(torch_env.said, torch_env.dropped);
}

/* The index in alloc_conf_names of a variable whose name has n characters; -1: another variable. */
static int known_name(const char *name, size_t n)
{
    for (int i = 0; i < ALLOC_CONF_NAMES; i++)
        if (strlen(alloc_conf_names[i]) == n && !memcmp(name, alloc_conf_names[i], n))
            return i;
    return -1;
}

/* out: the value of the variable where the program wants `value` (NULL: unset). False: too long, and the program's value stands. */
static bool mended(const char *name, const char *value, char *out)
{
    char dropped[TORCH_ENV_SETTINGS];
    if (alloc_conf_merge(torch_env_allocator(), value, out, TORCH_ENV_SETTINGS, dropped, sizeof dropped))
        return false;
    if (*dropped) {
        snprintf(torch_env.dropped, sizeof torch_env.dropped, "%.*s", TOLD - 1, dropped);
        torch_env.of = name;
        if (atomic_load(&torch_env.is_used)) /* else torch_env_tell() does: most programs of a script are not PyTorch */
            say();
    }
    return true;
}

static bool is_no_cache(const char *name, size_t n)
{
    return torch_env_allocator() == ALLOC_CONF_EACH && n == strlen(ALLOC_CONF_NO_CACHE) && !memcmp(name, ALLOC_CONF_NO_CACHE, n);
}

DOOR_PUBLIC int torch_env_setenv(const char *name, const char *value, int over) __asm__("setenv");
int torch_env_setenv(const char *name, const char *value, int over)
{
    char out[TORCH_ENV_SETTINGS];
    if (torch_env_allocator() == ALLOC_CONF_NONE || !name || !value)
        return next_setenv(name, value, over);
    const int i = known_name(name, strlen(name));
    if (i >= 0 && (over || !getenv(name)) && mended(alloc_conf_names[i], value, out))
        value = out;
    return next_setenv(name, is_no_cache(name, strlen(name)) ? "1" : value, over);
}

DOOR_PUBLIC int torch_env_unsetenv(const char *name) __asm__("unsetenv");
int torch_env_unsetenv(const char *name)
{
    char out[TORCH_ENV_SETTINGS];
    if (torch_env_allocator() == ALLOC_CONF_NONE || !name)
        return next_unsetenv(name);
    if (is_no_cache(name, strlen(name)))
        return 0;
    const int i = known_name(name, strlen(name));
    return i >= 0 && mended(alloc_conf_names[i], NULL, out) && *out ? next_setenv(name, out, 1) : next_unsetenv(name);
}

DOOR_PUBLIC int torch_env_putenv(char *text) __asm__("putenv");
int torch_env_putenv(char *text)
{
    char out[TORCH_ENV_SETTINGS];
    const char *equals = text ? strchr(text, '=') : NULL;
    if (torch_env_allocator() == ALLOC_CONF_NONE || !text)
        return next_putenv(text);
    if (!equals) /* no '=': the variable goes, as in the C library */
        return torch_env_unsetenv(text);
    if (is_no_cache(text, (size_t)(equals - text)))
        return 0;
    const int i = known_name(text, (size_t)(equals - text));
    return i >= 0 && mended(alloc_conf_names[i], equals + 1, out) ? next_setenv(alloc_conf_names[i], out, 1) : next_putenv(text);
}

void torch_env_at_load(void)
{
    char out[TORCH_ENV_SETTINGS];
    const enum alloc_conf how = alloc_conf_of(getenv("REMAT_ALLOCATOR"));
    atomic_store(&torch_env.how, how);
    for (int i = 0; how != ALLOC_CONF_NONE && i < ALLOC_CONF_NAMES; i++) {
        const char *now = getenv(alloc_conf_names[i]);
        if (mended(alloc_conf_names[i], now, out) && strcmp(now ? now : "", out) != 0)
            next_setenv(alloc_conf_names[i], out, 1);
    }
    if (how == ALLOC_CONF_EACH)
        next_setenv(ALLOC_CONF_NO_CACHE, "1", 1);
}

bool torch_env_mended(const char *settings, char *out)
{
    return torch_env_allocator() != ALLOC_CONF_NONE && mended("the allocator's settings", settings, out) && strcmp(settings, out) != 0;
}

void torch_env_tell(void)
{
    if (!atomic_exchange(&torch_env.is_used, true))
        say();
}
