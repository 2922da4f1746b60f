/* late.c: calls cuInit without having the driver among its needs, as a program does whose own cu* functions open the driver
 * at their first call. Prints the result.
 */
#include "preload/cuda_abi.h"

#include <stdio.h>

int main(void)
{
    int r = (int)cuInit(0);
    printf("cuInit %d\n", r);
    return 0;
}
