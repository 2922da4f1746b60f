/* probing.h: device.probe, the state of learning what ops do. Its parts are their files' own; this header is for files of learn/ alone. */
#ifndef REMAT_POLICY_PROBING_H
#define REMAT_POLICY_PROBING_H

#include "policy/learn/pace.h"
#include "policy/learn/rows.h"
#include "policy/op/op.h"

enum { PROBE_FILLS = 16 };
struct probe {
    struct pace pace;
    struct rows rows;
    CUevent t0, t1;            /* around the program's own run */
    bool tried, usable, stuck;
    bool checked;              /* an earlier run has looked at this very iteration: of known launches nothing is hashed */
    struct probe_fill {        /* hash of a buffer full of a poison */
        unsigned char poison;
        uint64_t bytes, hash[2];
    } fills[PROBE_FILLS];
    uint32_t next_fill;
    uint32_t idle[OP_MAX_OPERANDS]; /* what the latest op's trial found idle */
};

#endif
