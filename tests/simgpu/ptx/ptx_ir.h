/*
 * What a program is between reader and executor. A register is a row of 32 lanes, one for each thread of a warp, in its function's frame;
 * a number in the text is such a row in the program's pool; so is a special register, in the warp's own rows. An operand says which row: a
 * base and an offset. A predicate is one word, bit i for lane i.
 *
 * A frame: the lanes' return places (FRAME_RETURN), the frames they came from (FRAME_CALLER), where their local memory begins (FRAME_LOCAL),
 * then the registers.
 *
 * Invariant: a row has the width of its declaration (2, 4 or 8 bytes a lane), begins at a multiple of 32 bytes, and an instruction's operands
 * have the width that the instruction works on, but for loads, stores and conversions, which say it for each operand.
 */
#ifndef SIMGPU_PTX_IR_H
#define SIMGPU_PTX_IR_H

#include "tests/simgpu/ptx/ptx.h"

enum { LANES = 32, FRAME_RETURN = 0, FRAME_LOCAL = 128, FRAME_CALLER = 256, FRAME_FIRST = 384 };
#define ALL_LANES 0xffffffffu

enum ptx_type {
    T_NONE, T_PRED,
    T_B8, T_U8, T_S8,
    T_B16, T_U16, T_S16, T_F16, T_BF16,
    T_B32, T_U32, T_S32, T_F32, T_F16X2, T_BF16X2, T_TF32,
    T_B64, T_U64, T_S64, T_F64,
    T_B128,
    T_TYPES
};
extern const char *const ptx_type_names[T_TYPES];
extern const uint8_t ptx_type_bytes[T_TYPES];

enum ptx_space { S_GENERIC, S_GLOBAL, S_SHARED, S_LOCAL, S_CONST, S_PARAM, S_REG };

/* Where the windows of generic addresses begin: no address of the processor looks like these. */
#define WINDOW_SHARED 0x0100000000000000u
#define WINDOW_LOCAL 0x0200000000000000u
#define WINDOW_PARAM 0x0300000000000000u
#define WINDOW_BITS 56

enum ptx_base { B_FRAME, B_POOL, B_SPECIAL, B_SINK };
struct ptx_operand {
    uint32_t at;
    uint8_t base, bytes; /* bytes a lane; 0: a predicate */
    uint8_t negated;     /* of predicates */
};

/* Rows of a warp (B_SPECIAL). */
enum ptx_special {
    SR_TID_X, SR_TID_Y, SR_TID_Z, SR_NTID_X, SR_NTID_Y, SR_NTID_Z, SR_CTAID_X, SR_CTAID_Y, SR_CTAID_Z, SR_NCTAID_X, SR_NCTAID_Y,
    SR_NCTAID_Z, SR_LANEID, SR_WARPID, SR_NWARPID, SR_SMID, SR_NSMID, SR_LANEMASK_EQ, SR_LANEMASK_LE, SR_LANEMASK_LT, SR_LANEMASK_GE,
    SR_LANEMASK_GT, SR_DYNAMIC_SMEM, SR_TOTAL_SMEM, SR_ZERO32, SR_ONE32, SR_ROWS32,
    SR_GRIDID = SR_ROWS32, SR_ZERO64, SR_ROWS,
    /* not rows: read when they are asked for */
    SR_CLOCK, SR_CLOCK_HI, SR_CLOCK64, SR_GLOBALTIMER, SR_GLOBALTIMER_LO, SR_GLOBALTIMER_HI, SR_NONE
};
enum { SPECIAL_BYTES = SR_ROWS32 * 128 + (SR_ROWS - SR_ROWS32) * 256 };

enum ptx_mods {
    M_RN = 1 << 0, M_RZ = 1 << 1, M_RM = 1 << 2, M_RP = 1 << 3, M_ROUND = 15,
    M_FTZ = 1 << 4, M_SAT = 1 << 5, M_RELU = 1 << 6, M_CC = 1 << 7, M_RNA = 1 << 8, M_RINT = 1 << 9 /* .rni and the like */,
    M_SATFINITE = 1 << 10,
    /* of rows alone */
    M_ROUND_NEEDED = 1 << 16
};

struct ptx_insn;
struct warp;
/* Computes all 32 lanes of d. */
typedef void ptx_alu_fn(void *d, const void *a, const void *b, const void *c, const struct ptx_insn *in);
/* Does what the lanes of m are to do. */
typedef void ptx_exec_fn(struct warp *w, const struct ptx_insn *in, uint32_t m);

enum ptx_kind {
    K_ALU,   /* fn, d of 2, 4 or 8 bytes */
    K_ALU_PREPARED, /* K_ALU with flushing, rounding or saturation around it */
    K_SETP,  /* fn gives a byte a lane; d, second: predicates; c: combined by `sub` */
    K_PRED,  /* predicates alone; sub: which */
    K_EXEC,  /* exec */
    K_SYNC,  /* sync: may have to wait for lanes */
    K_BRA, K_BRX, K_CALL, K_RET, K_EXIT, K_BAR, K_TRAP, K_UNKNOWN
};

enum { PTX_VECTOR = 8 };
struct ptx_vec {
    unsigned n;
    struct ptx_operand o[PTX_VECTOR];
};

struct ptx_mem {
    uint8_t space, bytes, sign, n, vector; /* bytes: of one element in memory; n: elements; vector: how many are aligned together */
    bool frame;                            /* the address is in the lane's local memory of this frame */
    struct ptx_operand address;            /* 4 or 8 bytes */
    int64_t plus;
};

struct ptx_call {
    unsigned function;      /* index; UINT32_MAX: `target` says which, by address */
    struct ptx_operand target;
    unsigned n_in, n_out;
    struct ptx_arg {
        bool in_memory;     /* a .param variable at `at` of the caller's local memory; else the register or number `o` */
        uint32_t at, bytes;
        struct ptx_operand o;
    } arg[];                /* n_in, then n_out */
};

struct ptx_insn {
    uint8_t kind, n, type, type2; /* n: sources of K_ALU */
    uint8_t sub, guarded, guard_not, aligned;
    uint16_t post, flush;         /* K_ALU_PREPARED: M_ bits to do afterwards; bit i: source i is flushed, bit 3: the result */
    uint32_t guard;               /* predicate's offset in the frame */
    uint32_t mods, line;
    union {
        ptx_alu_fn *fn;
        ptx_exec_fn *exec;
    };
    bool (*sync)(struct warp *w, const struct ptx_insn *in, uint32_t *m); /* K_SYNC: false: the lanes *m wait */
    struct ptx_operand d, second, a, b, c, e;
    union {
        uint64_t imm;
        uint32_t target;          /* K_BRA: an instruction */
        struct ptx_mem mem;
        const struct ptx_call *call;
        struct { const uint32_t *targets; uint32_t n_targets; };
        const struct ptx_vec *vec; /* d, a, b, c */
    };
    const struct ptx_vec *data;   /* of loads and stores */
    const char *name;             /* the opcode as it stands in the text */
};

struct ptx_reloc { uint64_t at; uint32_t variable; uint32_t bytes; int64_t plus; };

struct ptx_function {
    const char *name;
    bool is_kernel, has_body, unknown_called;
    uint32_t first, n;             /* instructions */
    uint32_t frame_bytes, local_bytes;
    uint32_t n_formal_in, n_formal_out;
    struct ptx_formal { bool in_memory; uint32_t at, bytes; } *formal; /* outs, then ins; registers: `at` in the frame */
    unsigned *calls, n_calls;
    unsigned builtin;              /* 1: vprintf, 2: __assertfail */
    const char *missing;
    uint32_t own_shared, stack_bytes; /* local memory of it and all that it calls */
    unsigned kernel;               /* index */
};

struct ptx_shared { /* a .shared variable */
    uint64_t bytes, align;
    bool dynamic;
    unsigned user;   /* the one kernel that names it; USERS_MANY */
    uint32_t at;
};
enum { USER_NONE = -1, USERS_MANY = -2 };

struct ptx_program {
    struct ptx_insn *code;
    uint32_t n_code, room_code;
    unsigned char *pool;
    uint32_t pool_bytes, pool_room;
    struct ptx_reloc *relocs;          /* rows of the pool that are addresses of variables */
    unsigned n_relocs, room_relocs;
    struct ptx_function *functions;
    unsigned n_functions, room_functions;
    struct ptx_variable *variables;
    struct variable_inside { unsigned char *init; struct ptx_reloc *relocs; unsigned n_relocs, room; } *inside; /* beside the variables */
    unsigned n_variables, room_variables;
    struct ptx_shared *shared;
    unsigned n_shared, room_shared;
    struct ptx_kernel *kernels;
    unsigned n_kernels, room_kernels;
    unsigned *kernel_function;         /* n_kernels */
    uint32_t dynamic_at;               /* where dynamic shared memory begins, for all kernels alike; UINT32_MAX: behind each one's own */
    void *memory;                      /* everything that is freed with the program, see ptx_keep() */
};

/* n zeroed bytes that live as long as the program; NULL: no memory. */
void *ptx_keep(struct ptx_program *p, size_t n);

#endif
