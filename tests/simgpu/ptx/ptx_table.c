/* Finding a row by its form: one hash table over all tables of the variant that this processor runs. */
#include <pthread.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_rows.h"

enum { SLOTS = 4096, TABLES = 5 };
static const struct ptx_row *slot[SLOTS];
static const struct ptx_table *tables[TABLES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
struct ptx_blends ptx_blends;

static unsigned hash(const char *s)
{
    unsigned h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return (h ^ h >> 15) & (SLOTS - 1);
}

static void fill(void)
{
    const struct ptx_table *const any[TABLES] = { &ptx_int_any, &ptx_float_any, &ptx_half_any, &ptx_compare_any, &ptx_convert_any };
    memcpy(tables, any, sizeof tables);
    ptx_blends = (struct ptx_blends){ ptx_blend16_any, ptx_blend32_any, ptx_blend64_any };
#ifdef __x86_64__
    const struct ptx_table *const avx2[TABLES] = { &ptx_int_avx2, &ptx_float_avx2, &ptx_half_avx2, &ptx_compare_avx2, &ptx_convert_avx2 };
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        memcpy(tables, avx2, sizeof tables);
        ptx_blends = (struct ptx_blends){ ptx_blend16_avx2, ptx_blend32_avx2, ptx_blend64_avx2 };
    }
#endif
    for (int t = 0; t < TABLES; t++)
        for (unsigned i = 0; i < tables[t]->n; i++) {
            unsigned k = hash(tables[t]->row[i].form);
            while (slot[k])
                k = (k + 1) & (SLOTS - 1);
            slot[k] = &tables[t]->row[i];
        }
}

const struct ptx_row *ptx_row_of(const char *form)
{
    pthread_once(&once, fill);
    for (unsigned k = hash(form); slot[k]; k = (k + 1) & (SLOTS - 1))
        if (!strcmp(slot[k]->form, form))
            return slot[k];
    return NULL;
}

const char *ptx_form(unsigned i)
{
    pthread_once(&once, fill);
    for (int t = 0; t < TABLES; i -= tables[t++]->n)
        if (i < tables[t]->n)
            return tables[t]->row[i].form;
    return NULL;
}
