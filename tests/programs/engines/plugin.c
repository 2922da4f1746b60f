/* A plugin that is linked with what it calls: with a driver that is newer than remat, with cuFile, with the verbs. */
#include "tests/simgpu/newer/newer.h"

#include <stdint.h>

long cuFileRead(void *handle, void *base, size_t bytes, long file_offset, long offset);
void *ibv_reg_mr(void *pd, void *at, size_t bytes, int access);
int network_fill(unsigned value);
int ncclFreshFill(uint64_t to, unsigned value, size_t words);

CUresult plugin_fresh(CUdeviceptr to, unsigned value, size_t words, CUstream s) { return cuFreshFill(to, value, words, s); }
long plugin_read(CUdeviceptr to, unsigned value, size_t words) { return cuFileRead((void *)(uintptr_t)value, (void *)(uintptr_t)to, 4 * words, 0, 0); }
void *plugin_register(void *at, size_t bytes) { return ibv_reg_mr((void *)0, at, bytes, 7); }
int plugin_collect(uint64_t to, unsigned value, size_t words) { return ncclFreshFill(to, value, words); }
int plugin_receive(unsigned value) { return network_fill(value); }
