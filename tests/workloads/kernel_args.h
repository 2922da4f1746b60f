/*
 * Macros that expand a kernel's parameter list. kernels.def writes a list flat, "type, name, type, name...";
 * EACH(M, S, list) expands M(type, name) for every pair with S() between two of them. At most 16 pairs.
 */
#ifndef WORKLOADS_KERNEL_ARGS_H
#define WORKLOADS_KERNEL_ARGS_H

#define ARGS_COMMA() ,
#define ARGS_NOTHING()
#define ARGS_DECLARE(t, n) t n
#define ARGS_NAME(t, n) n

#define EACH_1(M, S, t, n) M(t, n)
#define EACH_2(M, S, t, n, ...) M(t, n) S() EACH_1(M, S, __VA_ARGS__)
#define EACH_3(M, S, t, n, ...) M(t, n) S() EACH_2(M, S, __VA_ARGS__)
#define EACH_4(M, S, t, n, ...) M(t, n) S() EACH_3(M, S, __VA_ARGS__)
#define EACH_5(M, S, t, n, ...) M(t, n) S() EACH_4(M, S, __VA_ARGS__)
#define EACH_6(M, S, t, n, ...) M(t, n) S() EACH_5(M, S, __VA_ARGS__)
#define EACH_7(M, S, t, n, ...) M(t, n) S() EACH_6(M, S, __VA_ARGS__)
#define EACH_8(M, S, t, n, ...) M(t, n) S() EACH_7(M, S, __VA_ARGS__)
#define EACH_9(M, S, t, n, ...) M(t, n) S() EACH_8(M, S, __VA_ARGS__)
#define EACH_10(M, S, t, n, ...) M(t, n) S() EACH_9(M, S, __VA_ARGS__)
#define EACH_11(M, S, t, n, ...) M(t, n) S() EACH_10(M, S, __VA_ARGS__)
#define EACH_12(M, S, t, n, ...) M(t, n) S() EACH_11(M, S, __VA_ARGS__)
#define EACH_13(M, S, t, n, ...) M(t, n) S() EACH_12(M, S, __VA_ARGS__)
#define EACH_14(M, S, t, n, ...) M(t, n) S() EACH_13(M, S, __VA_ARGS__)
#define EACH_15(M, S, t, n, ...) M(t, n) S() EACH_14(M, S, __VA_ARGS__)
#define EACH_16(M, S, t, n, ...) M(t, n) S() EACH_15(M, S, __VA_ARGS__)

#define ARGS_PICK(a1, b1, a2, b2, a3, b3, a4, b4, a5, b5, a6, b6, a7, b7, a8, b8, a9, b9, a10, b10, a11, b11, \
    a12, b12, a13, b13, a14, b14, a15, b15, a16, b16, N, ...) N
#define ARGS_COUNT(...) ARGS_PICK(__VA_ARGS__, 16, x, 15, x, 14, x, 13, x, 12, x, 11, x, 10, x, 9, x, 8, x, 7, x, \
    6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0)
#define ARGS_JOIN_(a, b) a##b
#define ARGS_JOIN(a, b) ARGS_JOIN_(a, b)
#define EACH(M, S, ...) ARGS_JOIN(EACH_, ARGS_COUNT(__VA_ARGS__))(M, S, __VA_ARGS__)

#endif
