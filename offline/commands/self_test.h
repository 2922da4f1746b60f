/* self_test.h: `remat doctor --self-test`: a small training program on the device at hand (the simulated one where there is none): by itself, watched, swapped
 * and by a plan, at most a minute in all. Its losses and parameters have to be the same each time, and its memory within the limit.
 *
 * The program is workloads/mlp where that came along (remat[sim], or a build folder), else a few lines of PyTorch for the python3 in PATH.
 *
 * Threads: the main thread. Errors: as findings.
 */
#ifndef REMAT_OFFLINE_SELF_TEST_H
#define REMAT_OFFLINE_SELF_TEST_H

enum self_test_verdict { SELF_TEST_OK, SELF_TEST_NOTE, SELF_TEST_BAD };
typedef void self_test_say(enum self_test_verdict v, const char *finding);

void self_test(self_test_say *say);

#endif
