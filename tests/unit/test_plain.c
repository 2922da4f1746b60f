/* Names of kernels as people write them. */
#include "tracer/plain.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *symbol, *name;
} known[] = {
    {"_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb", "at::native::vectorized_gather_kernel<16, long>"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EELb0EEEviT0_T1_",
     "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>, false>"},
    /* nvcc's own anonymous namespaces have the file's hash in their names */
    {"_ZN2at6native39_GLOBAL__N__6bd09d29_7_Loss_cu_5b0651e138nll_loss_forward_reduce_cuda_kernel_2dIfflEEvPT_S4_PKS3_PKT1_S6_bllll",
     "at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>"},
    {"_ZN2at6native5copy_ERNS_6TensorERKS1_b", "at::native::copy_"},
    {"ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"},
    {"libcudart.so.13+0xbb62", "libcudart.so.13+0xbb62"},
    {"_Z", "_Z"},
    {"_Zebra", "_Zebra"},
    {"_ZN2at6native29vectorized_elementwise_ker", "_ZN2at6native29vectorized_elementwise_ker"}, /* cut off somewhere */
    {"", ""},
};

START_TEST(names_are_as_people_write_them)
{
    char to[PLAIN_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ck_assert_ptr_eq(plain_name(known[i].symbol, to, sizeof to), to);
        ck_assert_str_eq(to, known[i].name);
    }
    ck_assert_str_eq(PLAIN(known[0].symbol), known[0].name);
}
END_TEST

START_TEST(what_does_not_fit_ends_in_dots)
{
    const char *whole = known[0].name;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (size_t room = 0; room <= strlen(known[k].name) + 3; room++) {
            char *to = malloc(room + 1); /* what is written past it is seen by the sanitizer, and here */
            to[room] = 'x';
            whole = known[k].name;
            plain_name(known[k].symbol, to, room);
            ck_assert_int_eq(to[room], 'x');
            if (room > strlen(whole)) {
                ck_assert_str_eq(to, whole);
            } else if (room > 4) {
                ck_assert_uint_eq(strlen(to), room - 1);
                ck_assert_str_eq(to + room - 4, "...");
                ck_assert_int_eq(strncmp(to, whole, room - 4), 0);
            } else if (room > 0) {
                ck_assert_uint_lt(strlen(to), room);
            }
            free(to);
        }
}
END_TEST

/* A symbol of 300 bytes whose name would have 2^60: each argument is a pair of the one before. */
START_TEST(a_short_symbol_of_a_huge_name_is_cut)
{
    static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char symbol[PLAIN_SYMBOL_BYTES] = "_Z1fI1AIiiE", to[PLAIN_BYTES];
    size_t n = strlen(symbol);
    for (int k = 1; k < 34; k++) /* S_ is f, S0_ is A, S1_ is A<int, int>, and so on */
        n += (size_t)snprintf(symbol + n, sizeof symbol - n, "S0_IS%c_S%c_E", digit[k], digit[k]);
    snprintf(symbol + n, sizeof symbol - n, "Evv");
    plain_name(symbol, to, sizeof to);
    ck_assert_int_eq(strncmp(to, "f<A<int, int>, A<A<int, int>, A<int, int> >", 43), 0);
    ck_assert_uint_eq(strlen(to), sizeof to - 1);
    ck_assert_str_eq(to + sizeof to - 4, "...");
}
END_TEST

START_TEST(nesting_and_length_have_an_end)
{
    static const char *const deep[] = {"P", "1AI", "N", "F", "K", "Dp", "A_", "XadL_Z", "Z1fIi", "cv", "M"};
    char *symbol = malloc(3 * PLAIN_SYMBOL_BYTES), to[PLAIN_BYTES];
    for (size_t d = 0; d < sizeof deep / sizeof *deep; d++)
        for (size_t bytes = 1000; bytes <= 2 * PLAIN_SYMBOL_BYTES; bytes *= 2) {
            size_t n = (size_t)sprintf(symbol, "_Z1f");
            while (n < bytes)
                n += (size_t)sprintf(symbol + n, "%s", deep[d]);
            sprintf(symbol + n, "i");
            plain_name(symbol, to, sizeof to);
            ck_assert_uint_lt(strlen(to), sizeof to);
            ck_assert(n + 1 < PLAIN_SYMBOL_BYTES || !strncmp(to, symbol, 100)); /* too long: as it came */
        }
    free(symbol);
}
END_TEST

/* Broken symbols: whatever comes in, something that ends comes out. */
START_TEST(broken_symbols_harm_nobody)
{
    static const char letters[] = "_ZNKSTILEPRFXv0123456789ailfbcdJGDpt.";
    unsigned long long seed = 1;
    char to[PLAIN_BYTES];
    for (int round = 0; round < 20000; round++) {
        char symbol[256];
        snprintf(symbol, sizeof symbol, "%s", known[round % 4].symbol);
        for (int change = 0; change < 1 + round % 7; change++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            const size_t at = 2 + (size_t)(seed >> 33) % (strlen(symbol) - 2);
            symbol[at] = letters[(size_t)(seed >> 17) % (sizeof letters - 1)];
        }
        plain_name(symbol, to, sizeof to);
        ck_assert_uint_lt(strlen(to), sizeof to);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plain");
    TCase *t = tcase_create("names");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, names_are_as_people_write_them);
    tcase_add_test(t, what_does_not_fit_ends_in_dots);
    tcase_add_test(t, a_short_symbol_of_a_huge_name_is_cut);
    tcase_add_test(t, nesting_and_length_have_an_end);
    tcase_add_test(t, broken_symbols_harm_nobody);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
