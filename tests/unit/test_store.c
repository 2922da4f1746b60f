/* Facts for other processes: the bytes they are written as, the files those lie in, and whose code they are of. */
#include "tracer/known/cache.h"
#include "tracer/known/digest.h"
#include "tracer/known/image.h"
#include "tracer/known/store.h"

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGS = 40, WORDS = 3 }; /* addresses at 0, 8 and 16; numbers from 24 on */

static const char *const WHYS[STORE_WHYS] = {"differs", "updates"};
static const struct known_whys whys = {WHYS, STORE_WHYS};
static const struct known_code code = {{3, 4}}, other = {{3, 5}};
static unsigned char args[ARGS];
static struct known_word words[WORDS];
static struct known_launch l;
static uint8_t use[WORDS], told[WORDS];
static struct known_range left = {16, 8, 64};
static struct known_facts did, says;
static char folder[64], path[256];

static void setup(void)
{
    memset(args, 0, sizeof args);
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint64_t at = 0x7f0000000000 + 4096 * i;
        words[i] = (struct known_word){.offset = 8 * i, .same_as = i, .bytes = 4096, .before = KNOWN_DEFINED};
        memcpy(args + 8 * i, &at, 8);
    }
    words[0].before = KNOWN_BLANK;
    l = (struct known_launch){args, words, ARGS, WORDS, {8, 1, 1}, {128, 1, 1}, 5};
    use[0] = KNOWN_WHOLE, use[1] = use[2] = KNOWN_READ;
    did = (struct known_facts){.use = use, .left = &left, .n_left = 1, .ns = 7};
    says = (struct known_facts){.use = told};
    strcpy(folder, "/tmp/test-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(line), 0);
}

/* A table with a kernel `gelu`, one pattern of which was measured so many times. */
static struct known *table(int times)
{
    enum known_news news;
    struct known *k = known_new();
    struct known_kernel *f = known_kernel(k, code, "gelu");
    known_lesson(k);
    for (int i = 0; i < times; i++)
        ck_assert_int_eq(known_enter(k, f, &l, &did, &news), 0);
    return k;
}

static unsigned char *written(struct known *k, size_t *n)
{
    unsigned char *bytes = NULL;
    ck_assert_int_eq(store_write(k, code, whys, CACHE_ENTRY_MOST, &bytes, n), 0);
    known_free(k);
    return bytes;
}

static enum known_state after_reading(const unsigned char *bytes, size_t n, struct known_code of)
{
    struct known *k = known_new();
    ck_assert_int_eq(store_read(k, code, whys, bytes, n, NULL), 0);
    const enum known_state s = known_ask(k, known_kernel(k, of, "gelu"), &l, &says);
    known_free(k);
    return s;
}

/* ---- bytes ----------------------------------------------------------------------------------------------------------- */

START_TEST(what_was_measured_twice_is_known_in_another_table)
{
    size_t n;
    did.why = WHYS[1];
    unsigned char *bytes = written(table(2), &n);
    const uint64_t elsewhere = 0x7e0000000000;
    memcpy(args + 8, &elsewhere, 8); /* another run has other addresses */
    ck_assert_int_eq(after_reading(bytes, n, code), KNOWN_FULLY);
    ck_assert(told[0] == KNOWN_WHOLE && told[1] == KNOWN_READ && says.why == WHYS[1] && says.ns == 7);
    ck_assert_int_eq(after_reading(bytes, n, other), KNOWN_NOT);
    l.grid[0] = 9;
    ck_assert_int_eq(after_reading(bytes, n, code), KNOWN_NOT);
    free(bytes);
}
END_TEST

START_TEST(what_was_measured_once_is_not_written)
{
    size_t n;
    free(written(table(1), &n));
    ck_assert_uint_eq(n, 0);
    struct known *k = table(1);
    known_settle(k);
    free(written(k, &n));
    ck_assert_uint_gt(n, 0);
}
END_TEST

START_TEST(what_was_wrong_stays_wrong)
{
    size_t n, m;
    unsigned char *good = written(table(2), &n);
    struct known *k = table(2);
    known_surprise(k, known_kernel(k, code, "gelu"), &l);
    unsigned char *bad = written(k, &m);
    ck_assert_int_eq(after_reading(bad, m, code), KNOWN_NOT);
    for (int order = 0; order < 2; order++) { /* whichever comes first */
        k = known_new();
        ck_assert_int_eq(store_read(k, code, whys, order ? bad : good, order ? m : n, NULL), 0);
        ck_assert_int_eq(store_read(k, code, whys, order ? good : bad, order ? n : m, NULL), 0);
        ck_assert_int_eq(known_ask(k, known_kernel(k, code, "gelu"), &l, &says), KNOWN_NOT);
        known_free(k);
    }
    k = known_new();
    ck_assert_int_eq(store_read(k, code, whys, good, n, NULL), 0);
    known_distrust(known_kernel(k, code, "gelu"));
    ck_assert_int_eq(known_ask(k, known_kernel(k, code, "gelu"), &l, &says), KNOWN_NOT);
    known_free(k);
    free(good);
    free(bad);
}
END_TEST

/* Nothing that runs later would show that such a word is in use after all. */
START_TEST(idle_words_are_believed_after_one_launch_here)
{
    static const uint32_t idle[] = {24};
    size_t n;
    enum known_news news;
    for (int sort = 0; sort < 2; sort++) {
        use[2] = sort ? KNOWN_READ : KNOWN_IDLE; /* an operand, or the address of memory that has gone */
        did.idle = sort ? idle : NULL, did.n_idle = (uint32_t)sort;
        unsigned char *bytes = written(table(2), &n);
        struct known *k = known_new();
        ck_assert_int_eq(store_read(k, code, whys, bytes, n, NULL), 0);
        struct known_kernel *f = known_kernel(k, code, "gelu");
        ck_assert_int_eq(known_ask(k, f, &l, &says), KNOWN_NOT);
        ck_assert_int_eq(known_enter(k, f, &l, &did, &news), 0);
        ck_assert_int_eq(news, KNOWN_NEWS_SAME);
        ck_assert_int_eq(known_ask(k, f, &l, &says), KNOWN_FULLY);
        known_free(k);
        free(bytes);
    }
}
END_TEST

/* Whatever the bytes are: no crash, and no more than the table can hold. */
START_TEST(any_bytes_can_be_read)
{
    size_t n;
    unsigned char *bytes = written(table(2), &n);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            struct known *k = known_new();
            bytes[i] ^= (unsigned char)(1 << bit);
            unsigned char *again = NULL;
            size_t m;
            (void)store_read(k, code, whys, bytes, n, NULL);
            (void)known_ask(k, known_kernel(k, code, "gelu"), &l, &says);
            if (!store_write(k, code, whys, CACHE_ENTRY_MOST, &again, &m))
                free(again);
            bytes[i] ^= (unsigned char)(1 << bit);
            known_free(k);
        }
    for (size_t i = 1; i < n; i++) {
        struct known *k = known_new();
        ck_assert_int_eq(store_read(k, code, whys, bytes, i, NULL), -EBADMSG);
        known_free(k);
    }
    free(bytes);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static const char *file_of(enum cache_sort sort, const uint64_t key[2])
{
    snprintf(path, sizeof path, "%s/%s-%016llx%016llx", folder, cache_sort_names[sort], (unsigned long long)key[0], (unsigned long long)key[1]);
    return path;
}

static int get(const uint64_t key[2], char text[16])
{
    unsigned char *bytes;
    size_t n;
    const int r = cache_get(folder, CACHE_PLAN, key, &bytes, &n);
    if (!r) {
        snprintf(text, 16, "%.*s", (int)n, (const char *)bytes);
        free(bytes);
    }
    return r;
}

START_TEST(an_entry_comes_back_as_it_was)
{
    char text[16];
    struct stat st;
    const uint64_t key[2] = {1, 0xfull << 60}, none[2] = {1, 1};
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "first", 5), 0);
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "second", 6), 0);
    ck_assert_int_eq(get(key, text), 0);
    ck_assert_str_eq(text, "second");
    ck_assert_int_eq(get(none, text), -ENOENT);
    ck_assert_int_eq(stat(file_of(CACHE_PLAN, key), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    char deeper[128];
    snprintf(deeper, sizeof deeper, "%s/cache/remat", folder);
    ck_assert_int_eq(cache_put(deeper, CACHE_PLAN, key, "x", 1), 0);
    ck_assert_int_eq(stat(deeper, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
}
END_TEST

START_TEST(an_entry_that_is_damaged_anywhere_is_none)
{
    char text[16];
    const uint64_t key[2] = {1, 2}, another[2] = {1, 3};
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "content", 7), 0);
    const int fd = open(file_of(CACHE_PLAN, key), O_RDWR);
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t i = 0; i < st.st_size; i++) {
        unsigned char is, was;
        ck_assert_int_eq(pread(fd, &was, 1, i), 1);
        for (int bit = 0; bit < 8; bit++) {
            is = was ^ (unsigned char)(1 << bit);
            ck_assert_int_eq(pwrite(fd, &is, 1, i), 1);
            ck_assert_int_eq(get(key, text), -EBADMSG);
        }
        ck_assert_int_eq(pwrite(fd, &was, 1, i), 1);
    }
    ck_assert_int_eq(get(key, text), 0);
    ck_assert_int_eq(pwrite(fd, "x", 1, st.st_size), 1);
    ck_assert_int_eq(get(key, text), -EBADMSG);
    for (off_t i = st.st_size; i-- > 0;) {
        ck_assert_int_eq(ftruncate(fd, i), 0);
        ck_assert_int_eq(get(key, text), -EBADMSG);
    }
    close(fd);
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "content", 7), 0); /* takes its place */
    ck_assert_int_eq(get(key, text), 0);
    char from[256];
    strcpy(from, file_of(CACHE_PLAN, key));
    ck_assert_int_eq(rename(from, file_of(CACHE_PLAN, another)), 0); /* another's */
    ck_assert_int_eq(get(another, text), -EBADMSG);
}
END_TEST

START_TEST(what_others_may_have_laid_there_is_left_alone)
{
    char text[16], to[256];
    const uint64_t key[2] = {1, 2}, linked[2] = {1, 3};
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "content", 7), 0);
    strcpy(to, file_of(CACHE_PLAN, key));
    ck_assert_int_eq(symlink(to, file_of(CACHE_PLAN, linked)), 0);
    ck_assert_int_eq(get(linked, text), -ELOOP);
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, linked, "content", 7), -EACCES);
    ck_assert_int_eq(chmod(to, 0622), 0);
    ck_assert_int_eq(get(key, text), -EACCES);
    ck_assert_int_eq(chmod(to, 0600), 0);
    ck_assert_int_eq(chmod(folder, 0770), 0);
    ck_assert_int_eq(get(key, text), -EACCES);
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, "content", 7), -EACCES);
    ck_assert_int_lt(cache_lock(folder), 0);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    const int lock = cache_lock(folder);
    ck_assert_int_ge(lock, 0);
    ck_assert_int_eq(cache_lock(folder), -EAGAIN);
    close(lock);
}
END_TEST

static int count(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s)
{
    uint64_t *sum = arg;
    (void)sort, (void)key, (void)used_s;
    sum[0]++;
    sum[1] += bytes;
    return 0;
}

START_TEST(the_folder_is_bounded_and_others_files_stay)
{
    enum { LARGE = 6 << 20, N = 16 };
    uint64_t sum[2] = {0, 0}, key[2] = {1, 0};
    char text[16], mine[128];
    char *large = calloc(1, LARGE);
    snprintf(mine, sizeof mine, "%s/plan-of-mine", folder);
    ck_assert_int_eq(close(open(mine, O_CREAT | O_WRONLY, 0600)), 0);
    for (key[1] = 0; key[1] < N; key[1]++) {
        ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, large, LARGE), 0);
        const struct timespec then[2] = {{.tv_sec = 1000 + (time_t)key[1]}, {.tv_sec = 1000 + (time_t)key[1]}};
        ck_assert_int_eq(utimensat(AT_FDCWD, file_of(CACHE_PLAN, key), then, 0), 0);
        const uint64_t first[2] = {1, 0};
        ck_assert_int_eq(get(first, text), 0); /* in use, again and again */
    }
    ck_assert_int_eq(cache_each(folder, count, sum), 0);
    ck_assert_uint_le(sum[1], CACHE_BYTES_MOST);
    ck_assert_uint_ge(sum[0], CACHE_BYTES_MOST / LARGE - 1);
    key[1] = 1;
    ck_assert_int_eq(get(key, text), -ENOENT); /* the one that was used longest ago */
    ck_assert_int_eq(access(mine, F_OK), 0);
    ck_assert_int_eq(cache_put(folder, CACHE_PLAN, key, large, CACHE_ENTRY_MOST + 1ul), -EFBIG);
    free(large);
}
END_TEST

/* ---- whose code ------------------------------------------------------------------------------------------------------- */

START_TEST(an_image_says_how_long_it_is)
{
    const void *at;
    unsigned char elf[512] = {0}, fat[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 32}, text[] = "//\n.version 8.0\n";
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64}, .e_shoff = 64, .e_shnum = 2, .e_shentsize = sizeof(Elf64_Shdr)};
    Elf64_Shdr s = {.sh_type = SHT_PROGBITS, .sh_offset = 300, .sh_size = 100};
    memcpy(elf, &h, sizeof h);
    memcpy(elf + 64 + sizeof s, &s, sizeof s);
    ck_assert_uint_eq(image_bytes(elf, sizeof elf, &at), 400);
    ck_assert_uint_eq(image_bytes(elf, 399, &at), 0);
    ck_assert_uint_eq(image_bytes(fat, sizeof fat, &at), 48);
    ck_assert_uint_eq(image_bytes(fat, 47, &at), 0);
    ck_assert_uint_eq(image_bytes(text, SIZE_MAX, &at), sizeof text - 1);
    struct {
        uint32_t magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, fat, NULL};
    ck_assert_uint_eq(image_bytes(&wrapper, SIZE_MAX, &at), 48);
    ck_assert_ptr_eq(at, fat);
    ck_assert_uint_eq(image_bytes("\1\2\3\4", 4, &at), 0);
}
END_TEST

START_TEST(another_byte_is_other_code)
{
    unsigned char fat[4096] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0xf0, 0x0f};
    struct known_code a, b;
    ck_assert(image_code(fat, &a) && image_code(fat, &b) && !memcmp(&a, &b, sizeof a));
    for (size_t i = 16; i < sizeof fat; i += 7) {
        fat[i] ^= 1;
        ck_assert(image_code(fat, &b) && memcmp(&a, &b, sizeof a));
        fat[i] ^= 1;
    }
    snprintf(path, sizeof path, "%s/image", folder);
    ck_assert(!image_file_code(path, &a) && !image_file_code(folder, &a) && !image_file_code("/dev/null", &a));
    for (int n = 0; n < 2; n++) {
        FILE *f = fopen(path, "a");
        ck_assert_int_eq(fputs("abcdefgh", f) < 0 || fclose(f), 0);
        ck_assert(image_file_code(path, n ? &b : &a));
    }
    ck_assert(memcmp(&a, &b, sizeof a));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("store");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_was_measured_twice_is_known_in_another_table);
    tcase_add_test(t, what_was_measured_once_is_not_written);
    tcase_add_test(t, what_was_wrong_stays_wrong);
    tcase_add_test(t, idle_words_are_believed_after_one_launch_here);
    tcase_add_test(t, any_bytes_can_be_read);
    tcase_add_test(t, an_entry_comes_back_as_it_was);
    tcase_add_test(t, an_entry_that_is_damaged_anywhere_is_none);
    tcase_add_test(t, what_others_may_have_laid_there_is_left_alone);
    tcase_add_test(t, the_folder_is_bounded_and_others_files_stay);
    tcase_add_test(t, an_image_says_how_long_it_is);
    tcase_add_test(t, another_byte_is_other_code);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
