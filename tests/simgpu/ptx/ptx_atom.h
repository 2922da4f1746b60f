/* Operations on memory that no other thread can come between. */
#ifndef SIMGPU_PTX_ATOM_H
#define SIMGPU_PTX_ATOM_H

enum ptx_atom { ATOM_NONE, ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_INC, ATOM_DEC, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS };

#endif
