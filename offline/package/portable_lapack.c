/* portable_lapack.c: what LAPACK's plain Fortran calls when it is handed a wrong argument. The original prints by libgfortran, the only reason to bring
 * that library along, and ends the program; so does this one end it, in the process that CBC has for itself (solvers/milp/milp.c).
 */
#include <stdlib.h>

void xerbla_(const char *routine, const int *argument, size_t length)
{
    (void)routine;
    (void)argument;
    (void)length;
    abort();
}
