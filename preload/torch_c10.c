/* torch_c10.c: PyTorch's own functions that have to do with its allocator. Each function here stands in front of PyTorch's, and calls it. Only PyTorch
 * calls them, so a process without PyTorch needs no symbol of PyTorch.
 *
 * - PyTorch's stream-ordered allocator, which remat has it use, lacks memory history, snapshots and more. One line says what was asked for and what serves.
 * - That allocator's message for a lack of memory is not the one that programs look for to try again with half the batch ("CUDA out of memory."; accelerate,
 *   Lightning): the message is put in those words, in place. Without its cache (--allocator each) PyTorch throws another exception than
 *   torch.OutOfMemoryError: torch.OutOfMemoryError is thrown instead.
 * - Settings that a script chooses by torch.cuda.memory._set_allocator_settings() or torch._C._accelerator_setAllocatorSettings() are mended as its variables
 *   are (torch_env.h).
 *
 * C++ in C: a std::string is a pointer, a length, and 16 bytes more, handed over by address; the place in the source is 24 bytes, handed over as C hands
 * over such a struct. The mangled names say that these are the types: functions of a PyTorch with other types have other names, and pass.
 */
#include "preload/door.h"
#include "preload/libc_dlsym.h"
#include "preload/torch_env.h"

#include "policy/process/log.h"
#include "tracer/loader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cxx_string {
    char *text;
    size_t length, capacity, more;
};
struct source_place {
    const char *function, *file;
    uint32_t line;
};

#define CXX_STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define CHECK_FAIL_TEXT "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
#define CHECK_FAIL_STRING "_ZN3c106detail14torchCheckFailEPKcS2_jRK" CXX_STRING
#define ERROR_MADE(whole) "_ZN3c105ErrorC" #whole "ENS_14SourceLocationE" CXX_STRING
#define NO_MEMORY_MADE(whole) "_ZN3c1016OutOfMemoryErrorC" #whole "ENS_14SourceLocationE" CXX_STRING

/* The function `name` of the library `in`, or of a library that `in` needs. Aborts without it: no function but PyTorch's calls here. */
static void *next(const char *in, const char *name)
{
    void *h = loader_open(in, RTLD_LAZY | RTLD_NOLOAD), *f = h ? libc_dlsym(h, name) : NULL;
    if (!f)
        abort();
    return f;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

/* True if `what`, of n characters, has been told before (known by a hash), or the table is full. */
static bool is_told(const char *what, size_t n)
{
    static _Atomic uint64_t told[16];
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)what[i]) * 0x100000001b3u;
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&told[i], &none, h) || none == h)
            return none == h;
    }
    return true;
}

static bool begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* Features that PyTorch refuses: the beginning of PyTorch's name, the name in the program's words, the option of remat that serves. */
static const struct refusal {
    const char *begins, *what, *serves;
} refusals[] = {
    {"snapshot", "a snapshot of its memory", "remat run --policy off has it; with --allocator each it is empty"},
    {"recordHistory", "to record the history of its memory", "remat run --policy off has it; with --allocator each it is empty"},
    {"createOrIncrefPool", "a memory pool (MemPool)", "remat run --allocator each takes one, and gives each tensor memory of its own all the same; or --policy off"},
    {"shareIpcHandle", "to send a tensor to another process", "that works with --policy off alone"},
    {"getIpcDevPtr", "to open a tensor of another process", "that works with --policy off alone"},
    {"checkPoolLiveAllocations", "the graphs of torch.compile(mode=\"reduce-overhead\")", "they work with --policy off alone; torch.compile's default mode works"},
    {"", NULL, "remat run --allocator each may have it; --policy off has it"},
};

static void tell(const char *file, const char *why)
{
    /* a feature that any allocator may lack is refused by the interface's header, in the allocator's name */
    if (torch_env_allocator() != ALLOC_CONF_ASYNC || !file || !why ||
        !(ends_with(file, "CUDAMallocAsyncAllocator.cpp") || (ends_with(file, "CUDACachingAllocator.h") && begins(why, "cudaMallocAsync"))) ||
        (!strstr(why, "not yet support") && !strstr(why, "not meaningful")))
        return;
    const char *what = strstr(why, "support ");
    what = what ? what + strlen("support ") : "snapshot";
    const size_t n = strcspn(what, ". \n");
    if (is_told(what, n))
        return;
    const struct refusal *r = refusals;
    while (!begins(what, r->begins))
        r++;
    log_say(SAY_WARN, "PyTorch refuses %.*s: its stream-ordered allocator, which remat uses, has no such thing; %s", r->what ? (int)strlen(r->what) : (int)n,
            r->what ? r->what : what, r->serves);
}

typedef void check_fail_text(const char *, const char *, uint32_t, const char *);
typedef void check_fail_string(const char *, const char *, uint32_t, const struct cxx_string *);

DOOR_PUBLIC check_fail_text torch_c10_text __asm__(CHECK_FAIL_TEXT);
void torch_c10_text(const char *function, const char *file, uint32_t line, const char *why)
{
    tell(file, why);
    ((check_fail_text *)next("libc10.so", CHECK_FAIL_TEXT))(function, file, line, why);
}

DOOR_PUBLIC check_fail_string torch_c10_string __asm__(CHECK_FAIL_STRING);
void torch_c10_string(const char *function, const char *file, uint32_t line, const struct cxx_string *why)
{
    tell(file, why ? why->text : NULL);
    ((check_fail_string *)next("libc10.so", CHECK_FAIL_STRING))(function, file, line, why);
}

/* ---- no memory ------------------------------------------------------------------------------------------------------------ */

/* "Allocation on device 0 would exceed allowed memory. (out of memory)" becomes "CUDA out of memory. Device 0 has no room for this", as long as before. */
static void put_in_known_words(struct cxx_string *why)
{
    static const char begins[] = "Allocation on device ", ends[] = " would exceed allowed memory. (out of memory)";
    char known[128];
    if (torch_env_allocator() != ALLOC_CONF_ASYNC || !why || !why->text || why->length < sizeof begins + sizeof ends ||
        memcmp(why->text, begins, sizeof begins - 1) != 0)
        return;
    const char *device = why->text + sizeof begins - 1;
    const size_t n = strspn(device, "0123456789"), whole = sizeof begins - 1 + n + sizeof ends - 1;
    if (n > 4 || why->length < whole || memcmp(device + n, ends, sizeof ends - 1) != 0)
        return;
    memset(known, ' ', sizeof known);
    const int used = snprintf(known, sizeof known, "CUDA out of memory. Device %.*s has no room for this.", (int)n, device);
    known[used] = ' ';
    memcpy(why->text, known, whole);
}

typedef void error_made(void *, struct source_place, struct cxx_string *);

#define MADE(sym, name)                                                                                                \
    DOOR_PUBLIC error_made sym __asm__(name);                                                                          \
    void sym(void *self, struct source_place at, struct cxx_string *why)                                               \
    {                                                                                                                  \
        put_in_known_words(why);                                                                                       \
        ((error_made *)next("libc10.so", name))(self, at, why);                                                                     \
    }
/* C1 makes a whole object, C2 the part of a derived one: PyTorch before 2.9 has OutOfMemoryError inherit the constructor. */
MADE(torch_c10_made, ERROR_MADE(1))
MADE(torch_c10_made_part, ERROR_MADE(2))
MADE(torch_c10_no_memory, NO_MEMORY_MADE(1))
MADE(torch_c10_no_memory_part, NO_MEMORY_MADE(2))

/* Throws torch.OutOfMemoryError, made by its own constructor, as C++ throws it: without its cache PyTorch checks cudaMalloc's answer as any other call's, and would throw a
 * general exception. CUDA's runtime remembers the error until cudaGetLastError() asks for it. */
static void throw_no_memory(const char *function, const char *file, uint32_t line)
{
    static const char text[] = "CUDA out of memory. The device has no room for this tensor.";
    enum { EXCEPTION_BYTES = 1024 /* more than the exception has; C++ alone knows its size */ };
    void *h = loader_open("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD), *c10 = loader_open("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    int (*last_error)(void) = (int (*)(void))(h ? libc_dlsym(h, "cudaGetLastError") : NULL);
    void *(*new)(size_t) = (void *(*)(size_t))(h ? libc_dlsym(h, "_Znwm") : NULL);
    void *(*allocate)(size_t) = (void *(*)(size_t))(h ? libc_dlsym(h, "__cxa_allocate_exception") : NULL);
    void (*throw)(void *, void *, void *) = (void (*)(void *, void *, void *))(h ? libc_dlsym(h, "__cxa_throw") : NULL);
    error_made *make = (error_made *)(c10 ? libc_dlsym(c10, NO_MEMORY_MADE(1)) : NULL);
    void *type = c10 ? libc_dlsym(c10, "_ZTIN3c1016OutOfMemoryErrorE") : NULL;
    if (!last_error || !new || !allocate || !throw || !make || !type)
        return;
    struct cxx_string why = {new (sizeof text), sizeof text - 1, sizeof text - 1, 0}; /* the exception takes the text over */
    memcpy(why.text, text, sizeof text);
    void *e = allocate(EXCEPTION_BYTES);
    memset(e, 0, EXCEPTION_BYTES);
    make(e, (struct source_place){function, file, line}, &why);
    last_error();
    throw(e, type, NULL); /* no destructor: the few bytes that the exception holds are not given back */
}

/* `line` is signed until PyTorch 2.5; from 2.14 on there is the argument `log`. */
#define CHECKED(sym, name)                                                                                             \
    typedef void checked_##sym(int, const char *, const char *, uint32_t, bool, void *);                               \
    DOOR_PUBLIC checked_##sym sym __asm__(name);                                                                       \
    void sym(int code, const char *file, const char *function, uint32_t line, bool assertions, void *log)              \
    {                                                                                                                  \
        if (DOOR_UNLIKELY(code == CUDA_ERROR_OUT_OF_MEMORY) && torch_env_allocator() == ALLOC_CONF_EACH &&             \
            ends_with(file, "CUDACachingAllocator.cpp"))                                                               \
            throw_no_memory(function, file, line);                                        \
        static _Atomic(void *) real_;                                                                                  \
        void *real = atomic_load_explicit(&real_, memory_order_relaxed);                                               \
        if (!real)                                                                                                     \
            atomic_store(&real_, real = next("libc10_cuda.so", name));                                                 \
        ((checked_##sym *)real)(code, file, function, line, assertions, log);                                          \
    }
#define CUDA_CHECKED "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_"
CHECKED(torch_c10_checked, CUDA_CHECKED "jbPNS0_19CUDAErrorLogCaptureE")
CHECKED(torch_c10_checked_short, CUDA_CHECKED "jb")
CHECKED(torch_c10_checked_signed, CUDA_CHECKED "ib")

/* ---- settings -------------------------------------------------------------------------------------------------------------- */

typedef void settings_parsed(void *, const struct cxx_string *);

static void parsed(settings_parsed *real, void *self, const struct cxx_string *settings)
{
    char mended[TORCH_ENV_SETTINGS];
    struct cxx_string instead = {mended, 0, sizeof mended - 1, 0};
    if (settings && settings->text && torch_env_mended(settings->text, mended)) {
        instead.length = strlen(mended);
        settings = &instead; /* `settings` is only read */
    }
    real(self, settings);
}

#define PARSED(sym, in, name)                                                                                          \
    DOOR_PUBLIC settings_parsed sym __asm__(name);                                                                     \
    void sym(void *self, const struct cxx_string *settings) { parsed((settings_parsed *)next(in, name), self, settings); }
PARSED(torch_c10_settings, "libc10.so", "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERK" CXX_STRING)
PARSED(torch_c10_cuda_settings, "libc10_cuda.so", "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig9parseArgsERK" CXX_STRING)
