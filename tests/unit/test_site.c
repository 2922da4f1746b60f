/* What a frame is called: names are kept by address, and must not outlive the library that they are of. */
#include "tracer/site.h"

#include <check.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];

/* The site as a call from the library's function shows it, twice: asked of the loader, and kept. Where the function lay in *at. */
static void called_from(const char *name, uintptr_t *at)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/site_%s.so", folder, name);
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(h != NULL, "%s", dlerror());
    char *(*f)(char *(*)(void)) = NULL;
    *(void **)&f = dlsym(h, name);
    ck_assert(f != NULL);
    for (int i = 0; i < 2; i++) {
        char *site = f(site_here);
        ck_assert_ptr_nonnull(site);
        ck_assert_msg(!strncmp(site, name, strlen(name)), "called from %s: %s", name, site);
        free(site);
    }
    *at = (uintptr_t)f;
    ck_assert_int_eq(dlclose(h), 0);
}

/* Of two libraries alike the second lies where the first lay. */
START_TEST(a_library_in_the_place_of_another)
{
    uintptr_t first, other;
    called_from("first", &first);
    called_from("other", &other);
    ck_assert_uint_eq(first, other);
}
END_TEST

int main(void)
{
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0)
        return 1;
    *strrchr(folder, '/') = 0;
    Suite *s = suite_create("site");
    TCase *c = tcase_create("site");
    tcase_add_test(c, a_library_in_the_place_of_another);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
