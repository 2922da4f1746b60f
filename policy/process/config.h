/* config.h: what `remat run` and `remat trace` tell the library, through the environment.
 *
 * Threads: config_read() is called once, before any other thread of remat's exists; the result is read-only afterwards.
 * Errors: 0, or -EINVAL with one line (no newline, no prefix) in `err`.
 *
 *   REMAT_LIMIT       SIZE, or PCT of the device's memory      REMAT_MODE        run (default) | trace
 *   REMAT_POLICY      auto | plan | dtr | swap | off            REMAT_ITERATIONS  iterations `trace` records (default 1)
 *   REMAT_PLAN        a plan-1 file                             REMAT_TRACE_OUT   where the opgraph-1 file goes
 *   REMAT_SOLVER      solver for `remat plan`                   REMAT_STATS       where the statistics go at exit
 *   REMAT_HOST_SWAP   SIZE of pinned host memory for swap       REMAT_BIN         the remat executable
 *   REMAT_VERIFY      off | sample | always                     REMAT_CACHE       folder of plans and facts, or off
 *   REMAT_LOG         see policy/process/log.h                          REMAT_DISABLE     1: the doors stay shut
 *   REMAT_GROUP       the group whose limit this is part of     REMAT_GROUP_LIMIT SIZE, or PCT of the device's memory
 *   REMAT_GUARANTEE   SIZE this process gets whenever it asks   REMAT_GROUP_DIR   see policy/share/ledger.h
 *   REMAT_REHEARSE    mapped | unmapped                         REMAT_NVTX        1: ranges for NVIDIA's profilers
 *   REMAT_STATUS_DIR  see policy/process/status.h              REMAT_LIMIT_MAX   limits of the `remat run`s around this one
 *   REMAT_KNOWN       use (default): a launch whose code and pattern are known is not measured again | measure: such a launch is measured too, and
 *                     compared with its facts (facts_contradicted in the statistics) | off: every launch is measured
 *   REMAT_QUIET       1: warnings alone                         REMAT_PLAN_ONLY   1: REMAT_PLAN or nothing (exit 125)
 *   REMAT_CONF_ALSO   see tracer/machine/conf.h                 REMAT_CGROUP      see tracer/machine/dmem.h
 */
#ifndef REMAT_POLICY_CONFIG_H
#define REMAT_POLICY_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_policy { POLICY_AUTO, POLICY_PLAN, POLICY_DTR, POLICY_SWAP, POLICY_OFF };
enum config_known { FACTS_OFF, FACTS_MEASURE, FACTS_USE };
enum config_verify { VERIFY_OFF, VERIFY_SAMPLE, VERIFY_ALWAYS };

struct config {
    uint64_t limit_bytes; /* 0: no limit given in bytes */
    double limit_pct;     /* percent of the device's memory; 0: no limit given in percent. At most one of the two is set */
    enum config_policy policy;
    enum config_verify verify;
    enum config_known known;
    uint64_t group_limit_bytes; /* 0: no group limit given in bytes */
    double group_limit_pct;     /* percent of the device's memory; 0: no group limit given in percent */
    uint64_t guarantee_bytes;   /* valid if guarantee_given */
    bool guarantee_given;
    uint64_t host_swap_bytes; /* 0: the engine's default */
    bool rehearse_unmapped;   /* evicted memory is unmapped until a plan is in force (plan/unmapped.h) */
    bool nvtx;                /* ranges for NVIDIA's profilers (nvtx.h) */
    bool quiet;               /* warnings alone: no story lines (story.h) and no closing line */
    bool plan_only;           /* the plan of REMAT_PLAN is followed, or the program ends */
    bool trace_mode;          /* learn and record only: nothing is evicted but to hold the limit, if there is one */
    int trace_iterations;     /* iterations recorded before learning stops, at least 1; the program itself runs to its end */
    /* absolute or relative paths as given; "" when not given */
    char plan_path[PATH_MAX], trace_out[PATH_MAX], stats[PATH_MAX], remat_bin[PATH_MAX], cache_dir[PATH_MAX];
    char solver[PATH_MAX]; /* "best" by default; exec:CMD is as long as a command may be */
    char group[64];  /* "" when not given */
};

/* Reads the process's environment; after an error the fields that could not be read have their defaults. cache_dir defaults to
 * $XDG_CACHE_HOME/remat, else $HOME/.cache/remat, else ""; "" too if REMAT_CACHE is `off`. */
int config_read(struct config *c, char *err, size_t err_bytes);

/* The limit in bytes on a device of `device_bytes`; 0 when there is no limit. */
uint64_t config_limit_bytes(const struct config *c, uint64_t device_bytes);

/* Words <-> enums; -EINVAL for an unknown word. */
int config_policy_of(const char *word);
int config_verify_of(const char *word);
const char *config_policy_name(enum config_policy p);

#endif
