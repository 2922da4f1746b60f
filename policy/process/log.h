/* log.h: the library's only way to speak: one line on stderr, `remat[pid]: text`.
 *
 * Threads: any, signal handlers too (formats without %f). No allocation, no lock, one write(2); errno is kept.
 * Every call site is capped: after LOG_CAP lines it says that it falls silent. Errors: none; a line that cannot be
 * written is lost. Long work (planning) shows on a terminal that it goes on (log_passing).
 *
 * REMAT_LOG is a comma-separated list, read once by log_init(): one level (error, warn, info, debug; default warn)
 * and topics (doors: counters of the driver calls, printed at exit).
 */
#ifndef REMAT_POLICY_LOG_H
#define REMAT_POLICY_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum log_level { SAY_ERROR, SAY_WARN, SAY_INFO, SAY_DEBUG };
enum { LOG_TOPIC_DOORS = 1 };
enum { LOG_CAP = 20 };

/* Written by log_init() alone. */
extern int log_threshold;
extern unsigned log_topics;

/* Parses `spec` (REMAT_LOG's value, or NULL). 0, or -EINVAL when it holds an unknown word; the known words count. */
int log_init(const char *spec);

/* `nth`: how many lines this call site has written before; at `cap - 1` the line says that it is the last. */
void log_line(unsigned nth, unsigned cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define LOG_SITE(level, cap, ...)                                                                                      \
    do {                                                                                                               \
        if ((int)(level) <= log_threshold) {                                                                           \
            static atomic_uint log_said_;                                                                              \
            unsigned log_nth_ = atomic_load_explicit(&log_said_, memory_order_relaxed);                                \
            if (log_nth_ < (unsigned)(cap)) {                                                                          \
                log_nth_ = atomic_fetch_add_explicit(&log_said_, 1, memory_order_relaxed);                             \
                if (log_nth_ < (unsigned)(cap))                                                                        \
                    log_line(log_nth_, (cap), __VA_ARGS__);                                                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* A line of the story (story.h). It takes the place of the story's line before it on a terminal in whose foreground the program is and to which the process has
 * written nothing since; elsewhere it is a line like any other. */
void log_state(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool log_on_terminal(void); /* stderr is a terminal in whose foreground the program is */
bool log_state_is_last(void); /* the terminal's latest line is one of log_state(): the process has written nothing since */
/* Remat has written `bytes` to some other file: they do not count as the program's. */
void log_wrote(size_t bytes);
/* log_wrote() for an unknown number of bytes: everything that the process writes between the two calls counts as remat's, while a line of log_state() is on the
 * terminal. `begun`: the value that log_own_writes_begin() returned. */
unsigned long long log_own_writes_begin(void);
void log_own_writes_end(unsigned long long begun);

/* A line that the next line, or log_passed(), wipes out: on a terminal in whose foreground the program is, and nowhere else. */
void log_passing(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_passed(void);

/* log_say(SAY_WARN, "format", ...): no trailing newline. log_once: log_say() with at most one line a call site and process. */
#define log_say(level, ...) LOG_SITE(level, LOG_CAP, __VA_ARGS__)
#define log_once(level, ...) LOG_SITE(level, 1, __VA_ARGS__)

/* A size as messages have it: whole MiB, but KiB for small sizes that are no whole MiB. `rt_size(bytes).text` lasts as long as the call it is in. */
struct rt_said {
    char text[24];
};
static inline struct rt_said rt_size(uint64_t bytes)
{
    struct rt_said s;
    bool whole = bytes >= 16u << 20 || (bytes && !(bytes & 0xfffff));
    snprintf(s.text, sizeof s.text, "%llu %s", (unsigned long long)(whole ? bytes >> 20 : (bytes + 1023) >> 10), whole ? "MiB" : "KiB");
    return s;
}

#endif
