/* How preload/cuda_abi_types.h lays out the driver interface. */
#include "preload/cuda_abi.h"
#include "tests/simgpu/abi_rows.h"

const abi_row abi_rows_ours[] = {
#include "tests/simgpu/abi_rows.def"
};
const size_t abi_rows_ours_count = sizeof abi_rows_ours / sizeof abi_rows_ours[0];
