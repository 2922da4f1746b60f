/*
 * PTX on the processor: a text is read into a program, a program's kernels are run.
 *
 * Threads: ptx_read and ptx_free are pure functions. ptx_run may be called from any thread, several at once, also for the same program; what
 * it needs besides the stack belongs to the calling thread and is used again by its next call, also after the call was left by longjmp.
 *
 * Errors: ptx_read returns 0 or a negative errno and says where in `why`. Inside ptx_run, a kernel's fault (an address outside of shared
 * memory, a barrier that threads never reach, a trap) calls ptx_launch.fail, which must not return. An access to global memory that is not
 * mapped raises SIGSEGV at the instruction, as in a kernel in C.
 */
#ifndef SIMGPU_PTX_H
#define SIMGPU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PTX_ARCH = 80,        /* the device's compute capability */
    PTX_ISA_MOST = 90,    /* the newest version of the text that is read, 10 * major + minor */
    PTX_MAX_THREADS = 1024,
    PTX_MAX_SHARED = 163 << 10 /* of a block */
};

struct ptx_program;

struct ptx_kernel {
    const char *name;
    const uint32_t *offset, *bytes; /* n_params each: where a parameter begins in the parameter block, its size */
    unsigned n_params;
    uint32_t param_bytes;
    uint32_t max_threads;  /* .maxntid and .reqntid as one number; 1024 where the text says nothing */
    uint32_t reqntid[3];   /* zeros: any block */
    uint32_t static_shared_bytes, local_bytes, registers;
    uint64_t flops_a_thread, bytes_a_thread; /* of its instructions, each counted once */
    const char *missing;   /* "line 12: wgmma.fence.sync.aligned is not known"; NULL: every instruction is known */
};

struct ptx_variable { /* .global or .const, of the whole program */
    const char *name;
    uint64_t bytes, align;
    const unsigned char *init; /* `bytes` of them; NULL: zeros */
    bool external;             /* defined elsewhere: cannot be run */
};

/* Reads `n` bytes of text. -EINVAL: not PTX, -ENOTSUP: a version or a target that this device does not have, -ENOMEM. */
int ptx_read(const char *text, size_t n, struct ptx_program **out, char *why, size_t why_bytes);
void ptx_free(struct ptx_program *p); /* NULL is fine */

unsigned ptx_kernels(const struct ptx_program *p);
const struct ptx_kernel *ptx_kernel(const struct ptx_program *p, unsigned i);
unsigned ptx_variables(const struct ptx_program *p);
const struct ptx_variable *ptx_variable(const struct ptx_program *p, unsigned i);
/* Overwrites the bytes of variable i's initial value that are addresses: at[k] is the address of variable k. */
void ptx_variable_addresses(const struct ptx_program *p, unsigned i, const uint64_t *at, unsigned char *init);

enum ptx_fault { PTX_ILLEGAL_ADDRESS, PTX_MISALIGNED, PTX_FAILED, PTX_ASSERT, PTX_NO_MEMORY };

struct ptx_launch {
    const struct ptx_program *program;
    unsigned kernel;
    unsigned grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params;          /* param_bytes of ptx_kernel */
    const uint64_t *variables;   /* where the program's variables lie; NULL: it has none */
    unsigned sm_count;
    uint64_t chaos;              /* not 0: blocks and warps run in an order that follows from the number, and registers begin as garbage */
    bool cooperative;            /* all blocks are there at once */
    void (*fail)(void *who, enum ptx_fault what, const char *text); /* does not return */
    void *who;
    void (*touched)(uint64_t at, unsigned bytes, bool stores); /* NULL, or: told of each access of a lane to global memory, just before it */
};
/* Runs a kernel to its end. */
void ptx_run(const struct ptx_launch *l);
/* Instructions of threads that the calling thread's last launch has executed. */
uint64_t ptx_executed(void);

/* Every form of instruction that is chosen from a table: "add.s32", "setp.lt.f32", ... NULL past the end. */
const char *ptx_form(unsigned i);

#endif
