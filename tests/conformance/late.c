/* late.c: a library that calls cuInit without having the driver among its needs, as one does whose own cu* functions open the
 * driver at their first call.
 */
#include "preload/cuda_abi.h"

int late(void);
int late(void)
{
    return (int)cuInit(0);
}
