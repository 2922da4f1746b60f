/* Which shuffle, vote or reduction an instruction is (ptx_insn.sub), and which product of matrices. */
#ifndef SIMGPU_PTX_LANES_H
#define SIMGPU_PTX_LANES_H

enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };
enum { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };
/* m x n x k: rows of a, columns of b, what is summed over */
struct ptx_matrix { unsigned char m, n, k, bits; };

#endif
