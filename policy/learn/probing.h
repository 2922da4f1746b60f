/* probing.h: device.probe, the state of learning what ops do. Each part of it belongs to the file that declares the part; this header is for files of learn/ alone. */
#ifndef REMAT_POLICY_PROBING_H
#define REMAT_POLICY_PROBING_H

#include "policy/learn/pace.h"
#include "policy/learn/rows.h"
#include "policy/op/op.h"

enum { PROBE_FILLS = 16 };
struct probe {
    struct pace pace;
    struct rows rows;
    CUevent t0, t1;            /* recorded around the program's own run of an op */
    bool tried, usable, stuck;
    bool checked;              /* an earlier run has looked at this very iteration: nothing is hashed around known launches */
    struct probe_fill {        /* hash of `bytes` bytes that are all `poison` */
        unsigned char poison;
        uint64_t bytes, hash[2];
    } fills[PROBE_FILLS];
    uint32_t next_fill;
    uint32_t idle[OP_MAX_OPERANDS]; /* probe_result.idle of the latest op */
};

#endif
