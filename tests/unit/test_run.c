/* launch.c, config.c, size_text.h: what `remat run` makes of its options and of the user's environment. */
#include "offline/commands/launch.h"
#include "tracer/machine/alloc_conf.h"
#include "policy/process/config.h"
#include "tracer/machine/size_text.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- PyTorch's allocator settings ----------------------------------------------------------------------------------- */

static const struct {
    const char *user, *out, *dropped;
} conf_cases[] = {
    {NULL, "backend:cudaMallocAsync", ""},
    {"", "backend:cudaMallocAsync", ""},
    {"backend:cudaMallocAsync", "backend:cudaMallocAsync", ""},
    {"backend:native", "backend:cudaMallocAsync", "backend:native"},
    {"expandable_segments:True", "backend:cudaMallocAsync", "expandable_segments:True"},
    {"pinned_use_background_threads:True", "backend:cudaMallocAsync,pinned_use_background_threads:True", ""},
    {"max_split_size_mb:128,pinned_num_register_threads:4,garbage_collection_threshold:0.8",
     "backend:cudaMallocAsync,pinned_num_register_threads:4", "max_split_size_mb:128,garbage_collection_threshold:0.8"},
    /* commas inside brackets belong to the value */
    {"roundup_power2_divisions:[256:1,512:2,>:4],per_process_memory_fraction:0.5",
     "backend:cudaMallocAsync,per_process_memory_fraction:0.5", "roundup_power2_divisions:[256:1,512:2,>:4]"},
    {" expandable_segments:True , new_setting:[1,2] ", "backend:cudaMallocAsync,new_setting:[1,2]", "expandable_segments:True"},
    {",,", "backend:cudaMallocAsync", ""},
    {"backend", "backend:cudaMallocAsync", "backend"},
};

START_TEST(alloc_conf)
{
    char out[256], dropped[256];
    ck_assert_int_eq(alloc_conf_merge(ALLOC_CONF_ASYNC, conf_cases[_i].user, out, sizeof out, dropped, sizeof dropped), 0);
    ck_assert_str_eq(out, conf_cases[_i].out);
    ck_assert_str_eq(dropped, conf_cases[_i].dropped);
}
END_TEST

START_TEST(alloc_conf_merges_to_itself)
{
    char once[256], twice[256], dropped[256];
    alloc_conf_merge(ALLOC_CONF_ASYNC, conf_cases[_i].user, once, sizeof once, dropped, sizeof dropped);
    ck_assert_int_eq(alloc_conf_merge(ALLOC_CONF_ASYNC, once, twice, sizeof twice, dropped, sizeof dropped), 0);
    ck_assert_str_eq(once, twice);
    ck_assert_str_eq(dropped, "");
}
END_TEST

START_TEST(alloc_conf_bounds)
{
    char out[64], dropped[64];
    for (size_t room = 0; room < sizeof out; room++) {
        memset(out, 'x', sizeof out);
        int rc = alloc_conf_merge(ALLOC_CONF_ASYNC, "pinned_num_register_threads:4", out, room, dropped, sizeof dropped);
        ck_assert(rc == 0 || rc == -ENAMETOOLONG);
        ck_assert_int_eq(rc == 0, room > strlen("backend:cudaMallocAsync,pinned_num_register_threads:4"));
        for (size_t i = room; i < sizeof out; i++)
            ck_assert_int_eq(out[i], 'x');
    }
}
END_TEST

/* Memory of its own for each tensor: the backend is PyTorch's own, whose other settings stay. */
START_TEST(alloc_conf_each)
{
    static const char *const cases[][3] = {{NULL, "", ""}, {"backend:native", "", ""}, {"backend:cudaMallocAsync", "", "backend:cudaMallocAsync"},
                                           {"max_split_size_mb:8,backend: native", "max_split_size_mb:8", ""},
                                           {" backend:x , expandable_segments:True", "expandable_segments:True", "backend:x"}};
    char out[256], dropped[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(alloc_conf_merge(ALLOC_CONF_EACH, cases[i][0], out, sizeof out, dropped, sizeof dropped), 0);
        ck_assert_str_eq(out, cases[i][1]);
        ck_assert_str_eq(dropped, cases[i][2]);
    }
    ck_assert_int_eq(alloc_conf_of(NULL), ALLOC_CONF_NONE);
    ck_assert_int_eq(alloc_conf_of("async"), ALLOC_CONF_ASYNC);
    ck_assert_int_eq(alloc_conf_of("each"), ALLOC_CONF_EACH);
    ck_assert_int_eq(alloc_conf_of("native"), ALLOC_CONF_NONE);
}
END_TEST

/* ---- LD_PRELOAD ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *before, *out;
} preload_cases[] = {
    {NULL, "/x/libremat.so"},
    {"", "/x/libremat.so"},
    {"/a.so", "/x/libremat.so:/a.so"},
    {"/a.so /b.so:/c.so", "/x/libremat.so:/a.so:/b.so:/c.so"},
    {"/a.so:/x/libremat.so", "/x/libremat.so:/a.so"},
    {"/x/libremat.so:/a.so", "/x/libremat.so:/a.so"},
    {"/usr/lib/libasan.so.8:/a.so", "/usr/lib/libasan.so.8:/x/libremat.so:/a.so"},
    {"::", "/x/libremat.so"},
};

START_TEST(preload)
{
    char out[128];
    ck_assert_int_eq(launch_preload("/x/libremat.so", preload_cases[_i].before, out, sizeof out), 0);
    ck_assert_str_eq(out, preload_cases[_i].out);
    ck_assert_int_eq(launch_preload("/x/libremat.so", preload_cases[_i].before, out, 10), -ENAMETOOLONG);
}
END_TEST

/* ---- sizes ---------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    int rc;
    uint64_t bytes;
} size_cases[] = {
    {"0", 0, 0}, {"1", 0, 1}, {"4096", 0, 4096}, {"1K", 0, 1024}, {"12G", 0, 12ull << 30}, {"12g", 0, 12ull << 30},
    {"1536MiB", 0, 1536ull << 20}, {"1.5GiB", 0, 3ull << 29}, {"2T", 0, 2ull << 40}, {"0.5K", 0, 512},
    {"18446744073709551615", 0, UINT64_MAX}, {"18446744073709551616", -ERANGE, 0}, {"17179869184G", -ERANGE, 0},
    {"99999999999.5T", -ERANGE, 0}, {"", -EINVAL, 0}, {"-1", -EINVAL, 0}, {"+1", -EINVAL, 0}, {" 1", -EINVAL, 0},
    {"1 G", -EINVAL, 0}, {"G", -EINVAL, 0}, {"1.5", -EINVAL, 0}, {"0x10", -EINVAL, 0}, {"1e3", -EINVAL, 0},
    {"12X", -EINVAL, 0}, {"12Gi", -EINVAL, 0}, {"12GB", -EINVAL, 0}, {"nan", -EINVAL, 0}, {"50%", -EINVAL, 0},
};

START_TEST(sizes)
{
    uint64_t bytes = 0;
    ck_assert_int_eq(size_text_bytes(size_cases[_i].text, &bytes), size_cases[_i].rc);
    if (!size_cases[_i].rc)
        ck_assert_uint_eq(bytes, size_cases[_i].bytes);
}
END_TEST

START_TEST(limits)
{
    uint64_t bytes;
    double pct;
    ck_assert_int_eq(size_text_limit("12G", &bytes, &pct), 0);
    ck_assert(bytes == 12ull << 30 && pct == 0);
    ck_assert_int_eq(size_text_limit("12.5%", &bytes, &pct), 0);
    ck_assert(bytes == 0 && pct == 12.5);
    ck_assert_int_eq(size_text_limit("100%", &bytes, &pct), 0);
    static const char *const out_of_range[] = {"0", "0%", "100.1%", "0.0%"};
    for (size_t i = 0; i < sizeof out_of_range / sizeof out_of_range[0]; i++)
        ck_assert_int_eq(size_text_limit(out_of_range[i], &bytes, &pct), -ERANGE);
    static const char *const bad[] = {"%", "-5%", "5%%", "1e1%", "12", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(size_text_limit(bad[i], &bytes, &pct) == 0, strcmp(bad[i], "12") == 0);
}
END_TEST

/* ---- the library's side ------------------------------------------------------------------------------------------------------ */

static const char *const variables[] = {"REMAT_LIMIT", "REMAT_POLICY", "REMAT_PLAN", "REMAT_SOLVER", "REMAT_HOST_SWAP",
                                        "REMAT_VERIFY", "REMAT_KNOWN", "REMAT_MODE", "REMAT_ITERATIONS", "REMAT_TRACE_OUT", "REMAT_STATS",
                                        "REMAT_BIN", "REMAT_CACHE", "XDG_CACHE_HOME"};

static void clear_environment(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
}

START_TEST(config_defaults)
{
    struct config c;
    char err[256];
    clear_environment();
    setenv("HOME", "/home/x", 1);
    setenv("REMAT_PLAN", "", 1); /* empty: as if absent */
    ck_assert_int_eq(config_read(&c, err, sizeof err), 0);
    ck_assert(c.limit_bytes == 0 && c.limit_pct == 0 && c.policy == POLICY_AUTO && c.verify == VERIFY_SAMPLE);
    ck_assert(!c.trace_mode && c.trace_iterations == 1 && c.host_swap_bytes == 0 && !*c.plan_path);
    ck_assert_str_eq(c.solver, "best");
    ck_assert_str_eq(c.cache_dir, "/home/x/.cache/remat");
    ck_assert_uint_eq(config_limit_bytes(&c, 100), 0);
}
END_TEST

START_TEST(config_all)
{
    struct config c;
    char err[256];
    clear_environment();
    setenv("REMAT_LIMIT", "50%", 1);
    setenv("REMAT_POLICY", "dtr", 1);
    setenv("REMAT_VERIFY", "always", 1);
    setenv("REMAT_MODE", "trace", 1);
    setenv("REMAT_ITERATIONS", "3", 1);
    setenv("REMAT_HOST_SWAP", "1G", 1);
    setenv("REMAT_TRACE_OUT", "t.json", 1);
    setenv("REMAT_CACHE", "/c", 1);
    ck_assert_int_eq(config_read(&c, err, sizeof err), 0);
    ck_assert_uint_eq(config_limit_bytes(&c, 1000), 500);
    ck_assert(c.policy == POLICY_DTR && c.verify == VERIFY_ALWAYS && c.trace_mode && c.trace_iterations == 3);
    ck_assert_uint_eq(c.host_swap_bytes, 1ull << 30);
    ck_assert_str_eq(c.trace_out, "t.json");
    ck_assert_str_eq(c.cache_dir, "/c");
    ck_assert_str_eq(config_policy_name(c.policy), "dtr");
}
END_TEST

static const char *const bad_settings[][2] = {
    {"REMAT_LIMIT", "lots"}, {"REMAT_LIMIT", "0"}, {"REMAT_LIMIT", "200%"}, {"REMAT_POLICY", "Auto"},
    {"REMAT_VERIFY", "maybe"}, {"REMAT_KNOWN", "yes"}, {"REMAT_MODE", "walk"}, {"REMAT_ITERATIONS", "0"}, {"REMAT_ITERATIONS", "2x"},
    {"REMAT_HOST_SWAP", "-1"}, {"REMAT_SOLVER", "a-name-that-is-much-too-long-to-be-any-solver"},
    {"REMAT_SOLVER", "min cut\n"}, {"REMAT_SOLVER", "Exec:true"},
};

START_TEST(config_refuses)
{
    struct config c;
    char err[256] = "";
    clear_environment();
    setenv(bad_settings[_i][0], bad_settings[_i][1], 1);
    ck_assert_int_eq(config_read(&c, err, sizeof err), -EINVAL);
    /* the line names the variable and is one line */
    ck_assert_ptr_nonnull(strstr(err, bad_settings[_i][0]));
    ck_assert_ptr_null(strchr(err, '\n'));
}
END_TEST

/* A command is held whole, up to what a path may have, or refused. */
START_TEST(config_own_solver)
{
    struct config c;
    char err[256] = "", *command = malloc(PATH_MAX + 2);
    clear_environment();
    ck_assert_ptr_nonnull(command);
    memset(command, 'x', PATH_MAX);
    memcpy(command, "exec:", 5);
    command[PATH_MAX] = '\0';
    setenv("REMAT_SOLVER", command, 1);
    ck_assert_int_eq(config_read(&c, err, sizeof err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "REMAT_SOLVER is longer than"));
    ck_assert_str_eq(c.solver, "best");
    command[PATH_MAX - 1] = '\0';
    setenv("REMAT_SOLVER", command, 1);
    ck_assert_int_eq(config_read(&c, err, sizeof err), 0);
    ck_assert_str_eq(c.solver, command);
    free(command);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

int main(void)
{
    Suite *s = suite_create("run");
    TCase *t = tcase_create("launch");
    tcase_add_loop_test(t, alloc_conf, 0, COUNT(conf_cases));
    tcase_add_loop_test(t, alloc_conf_merges_to_itself, 0, COUNT(conf_cases));
    tcase_add_test(t, alloc_conf_bounds);
    tcase_add_test(t, alloc_conf_each);
    tcase_add_loop_test(t, preload, 0, COUNT(preload_cases));
    suite_add_tcase(s, t);
    t = tcase_create("settings");
    tcase_add_loop_test(t, sizes, 0, COUNT(size_cases));
    tcase_add_test(t, limits);
    tcase_add_test(t, config_defaults);
    tcase_add_test(t, config_all);
    tcase_add_loop_test(t, config_refuses, 0, COUNT(bad_settings));
    tcase_add_test(t, config_own_solver);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
