/* ledger.c: what every member has mapped never passes the group's limit, whoever is killed at whatever point; the share of
 * the dead is free; guarantees are handed over. Each process keeps its own count of what it has "mapped" in memory that the
 * ledger knows nothing of, and sums all of them after every step. */
#include "policy/share/ledger.h"
#include "policy/share/ledger_sums.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/remat-ledger-XXXXXX";
static char err[512];

static struct ledger_ask ask_for(const char *group, uint64_t limit, uint64_t guarantee)
{
    return (struct ledger_ask){.group = group, .device = {1, 2, 3}, .device_bytes = 1 << 30, .limit_bytes = limit, .guarantee = guarantee};
}

static struct ledger *join(const char *group, uint64_t limit, uint64_t guarantee)
{
    struct ledger_ask a = ask_for(group, limit, guarantee);
    struct ledger *l = NULL;
    if (ledger_join(&a, &l, err, sizeof err))
        fprintf(stderr, "%s\n", err);
    return l;
}

/* A member in a process of its own that does as it is told: one letter in, a number out. */
struct member {
    pid_t pid;
    int to, from;
};

static void obey(struct ledger *l, int in, int out)
{
    struct {
        char what;
        uint64_t n;
    } order;
    while (read(in, &order, sizeof order) == (ssize_t)sizeof order) {
        bool blocked = false;
        uint64_t answer = 0;
        if (order.what == 'r')
            answer = (uint64_t)-ledger_reserve(l, order.n);
        else if (order.what == 'f')
            ledger_release(l, order.n);
        else if (order.what == 'w')
            ledger_want(l, order.n, true);
        else if (order.what == 'o')
            answer = ledger_owed(l, &blocked) | (uint64_t)blocked << 63;
        else if (order.what == 'a')
            answer = ledger_available(l);
        else if (order.what == 'e')
            answer = ledger_entitled(l);
        if (write(out, &answer, sizeof answer) < 0)
            _exit(1);
    }
    _exit(0);
}

static struct member member_new(const char *group, uint64_t limit, uint64_t guarantee)
{
    int to[2], from[2];
    struct member m;
    ck_assert(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
    m.pid = fork();
    if (m.pid == 0) {
        close(to[1]);
        close(from[0]);
        struct ledger *l = join(group, limit, guarantee);
        uint64_t ok = l != NULL;
        if (write(from[1], &ok, sizeof ok) < 0 || !l)
            _exit(1);
        obey(l, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    m.to = to[1];
    m.from = from[0];
    uint64_t ok = 0;
    ck_assert_int_eq(read(m.from, &ok, sizeof ok), (int)sizeof ok);
    ck_assert_uint_eq(ok, 1);
    return m;
}

static uint64_t tell(const struct member *m, char what, uint64_t n)
{
    struct {
        char what;
        uint64_t n;
    } order = {what, n};
    uint64_t answer = 0;
    ck_assert_int_eq(write(m->to, &order, sizeof order), (int)sizeof order);
    ck_assert_int_eq(read(m->from, &answer, sizeof answer), (int)sizeof answer);
    return answer;
}

static void member_kill(struct member *m, bool reap)
{
    kill(m->pid, SIGKILL);
    if (reap)
        waitpid(m->pid, NULL, 0);
    else { /* a zombie: its parent does not look */
        siginfo_t info;
        waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOWAIT);
    }
    close(m->to);
    close(m->from);
}

START_TEST(one_budget)
{
    struct member a = member_new("one", 100, LEDGER_NO_GUARANTEE), b = member_new("one", 100, LEDGER_NO_GUARANTEE);
    ck_assert_uint_eq(tell(&a, 'r', 70), 0); /* beyond its half: nobody waits for it */
    ck_assert_uint_eq(tell(&b, 'r', 40), ENOSPC);
    ck_assert_uint_eq(tell(&b, 'a', 0), 30);
    ck_assert_uint_eq(tell(&b, 'r', 30), 0);
    ck_assert_uint_eq(tell(&a, 'r', 1), ENOSPC);
    tell(&b, 'f', 10);
    ck_assert_uint_eq(tell(&a, 'r', 10), 0);
    ck_assert_uint_eq(tell(&a, 'r', 101), ENOSPC);
    struct ledger_view v;
    char path[128];
    snprintf(path, sizeof path, "%s/one@01020300000000000000000000000000", dir);
    ck_assert_int_eq(ledger_read(path, &v), 0);
    ck_assert_uint_eq(v.n, 2);
    ck_assert_uint_eq(v.limit, 100);
    ck_assert_uint_eq(v.reserved, 100);
    ck_assert_uint_eq(v.peak_reserved, 100);
    ck_assert_str_eq(v.group, "one");
    ck_assert_int_eq(v.member[0].pid, a.pid);
    ck_assert_uint_eq(v.member[0].reserved, 80);
    ck_assert_uint_eq(v.member[1].entitled, 50);
    member_kill(&a, true);
    ck_assert_uint_eq(tell(&b, 'r', 80), 0);
    member_kill(&b, true);
    ck_assert_int_eq(ledger_read(path, &v), 0);
    ck_assert_uint_eq(v.n, 0);
    ck_assert_uint_eq(v.reserved, 0);
}
END_TEST

/* In a child of the test: forks one of its own, tells its number, and both wait to be killed. */
static void live_on_with_a_child(int to)
{
    pid_t child = fork();
    if (child && write(to, &child, sizeof child) < 0)
        _exit(1);
    for (;;)
        pause();
}

/* The killed one is not reaped by its parent, and has a child that lives on and holds all it inherited. */
START_TEST(the_dead_keep_nothing)
{
    struct member b = member_new("dead", 100, LEDGER_NO_GUARANTEE);
    int ready[2];
    ck_assert(!pipe(ready));
    pid_t a = fork();
    if (a == 0) {
        struct ledger *l = join("dead", 100, LEDGER_NO_GUARANTEE);
        if (!l || ledger_reserve(l, 90))
            _exit(1);
        live_on_with_a_child(ready[1]);
    }
    pid_t child = 0;
    ck_assert_int_eq(read(ready[0], &child, sizeof child), (int)sizeof child);
    ck_assert_uint_eq(tell(&b, 'r', 20), ENOSPC);
    kill(a, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)a, &info, WEXITED | WNOWAIT), 0);
    ck_assert_uint_eq(tell(&b, 'r', 95), 0);
    waitpid(a, NULL, 0);
    kill(child, SIGKILL);
    member_kill(&b, true);
}
END_TEST

/* Killed while it holds the file against others who join; a child that it forked lives on with all that it inherited. */
START_TEST(killed_while_joining)
{
    struct member b = member_new("joining", 100, LEDGER_NO_GUARANTEE);
    char path[128];
    int ready[2];
    snprintf(path, sizeof path, "%s/joining@01020300000000000000000000000000", dir);
    ck_assert(!pipe(ready));
    pid_t a = fork();
    if (a == 0) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || fcntl(fd, F_SETLK, &l))
            _exit(1);
        live_on_with_a_child(ready[1]);
    }
    pid_t child = 0;
    ck_assert_int_eq(read(ready[0], &child, sizeof child), (int)sizeof child);
    kill(a, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)a, &info, WEXITED | WNOWAIT), 0); /* not reaped */
    time_t before = time(NULL);
    struct member c = member_new("joining", 100, LEDGER_NO_GUARANTEE);
    ck_assert_int_lt(time(NULL) - before, 5); /* it did not wait for the dead one's lock */
    ck_assert_uint_eq(tell(&c, 'r', 100), 0);
    waitpid(a, NULL, 0);
    kill(child, SIGKILL);
    member_kill(&b, true);
    member_kill(&c, true);
}
END_TEST

/* Closing every descriptor drops the lock; the process lives, so its share stays its own. */
START_TEST(without_descriptors_alive)
{
    int ready[2];
    ck_assert(!pipe(ready));
    pid_t a = fork();
    if (a == 0) {
        struct ledger *l = join("closed", 100, LEDGER_NO_GUARANTEE);
        char ok = l && !ledger_reserve(l, 90) ? 'y' : 'n';
        for (int fd = 3; fd < 256; fd++)
            if (fd != ready[1])
                close(fd);
        if (write(ready[1], &ok, 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    char ok = 0;
    ck_assert_int_eq(read(ready[0], &ok, 1), 1);
    ck_assert_int_eq(ok, 'y');
    struct member b = member_new("closed", 100, LEDGER_NO_GUARANTEE);
    ck_assert_uint_eq(tell(&b, 'r', 20), ENOSPC);
    kill(a, SIGKILL);
    waitpid(a, NULL, 0);
    ck_assert_uint_eq(tell(&b, 'r', 20), 0);
    member_kill(&b, true);
}
END_TEST

START_TEST(guarantees)
{
    struct member a = member_new("g", 100, 20), b = member_new("g", 0, 50), c = member_new("g", 0, LEDGER_NO_GUARANTEE);
    struct ledger_ask more = ask_for("g", 0, 31);
    ck_assert_int_eq(ledger_may_join(&more, err, sizeof err), -EDQUOT);
    ck_assert_uint_eq(tell(&c, 'e', 0), 30);
    ck_assert_uint_eq(tell(&a, 'r', 60), 0); /* 40 beyond its own */
    ck_assert_uint_eq(tell(&c, 'r', 40), 0); /* 10 beyond */
    ck_assert_uint_eq(tell(&b, 'r', 10), ENOSPC);
    ck_assert_uint_eq(tell(&a, 'o', 0), 0); /* nobody has asked */
    tell(&b, 'w', 80); /* cut to 50 */
    uint64_t owed_a = tell(&a, 'o', 0), owed_c = tell(&c, 'o', 0);
    ck_assert_uint_eq(owed_a >> 63, 1);
    owed_a &= ~(1ull << 63);
    owed_c &= ~(1ull << 63);
    ck_assert_uint_ge(owed_a + owed_c, 50);
    ck_assert_uint_eq(owed_a, 40);
    ck_assert_uint_eq(owed_c, 10);
    tell(&a, 'f', owed_a);
    ck_assert_uint_eq(tell(&a, 'r', 1), ENOSPC); /* what was given is not taken back, nor by others */
    tell(&c, 'f', owed_c);
    ck_assert_uint_eq(tell(&c, 'r', 1), ENOSPC);
    ck_assert_uint_eq(tell(&b, 'r', 50), 0);
    ck_assert_uint_eq(tell(&b, 'o', 0) | tell(&a, 'o', 0), 0);
    member_kill(&b, false);
    ck_assert_uint_eq(tell(&a, 'r', 50), 0); /* what a dead one waits for or has is nothing */
    member_kill(&a, true);
    member_kill(&c, true);
    waitpid(b.pid, NULL, 0);
}
END_TEST

START_TEST(refusals)
{
    static const char *const bad[] = {"", ".x", "a/b", "a b", "a@b", "0123456789012345678901234567890123456789012345678"};
    struct ledger_ask a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        a = ask_for(bad[i], 100, LEDGER_NO_GUARANTEE);
        ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), -EINVAL);
    }
    a = ask_for("new", 0, LEDGER_NO_GUARANTEE);
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), -ENOENT);
    struct ledger *l = NULL;
    ck_assert_int_eq(ledger_join(&a, &l, err, sizeof err), -ENOENT);
    a = ask_for("new", 2u << 30, LEDGER_NO_GUARANTEE);
    ck_assert_int_eq(ledger_join(&a, &l, err, sizeof err), -EINVAL);
    struct member m = member_new("new", 100, LEDGER_NO_GUARANTEE);
    a = ask_for("new", 200, LEDGER_NO_GUARANTEE);
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err, "has a limit of 100"));
    ck_assert_int_eq(ledger_join(&a, &l, err, sizeof err), -EEXIST);
    member_kill(&m, true);
    m = member_new("new", 200, LEDGER_NO_GUARANTEE); /* nobody was left: the limit is the next one's */
    member_kill(&m, true);
    char path[128];
    snprintf(path, sizeof path, "%s/bad@01020300000000000000000000000000", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 1 << 16; i++)
        fputc('x', f);
    fclose(f);
    a = ask_for("bad", 100, LEDGER_NO_GUARANTEE);
    ck_assert_int_eq(ledger_join(&a, &l, err, sizeof err), -EINVAL);
    struct ledger_view v;
    ck_assert_int_eq(ledger_read(path, &v), -EINVAL);
    snprintf(path, sizeof path, "%s/begun@01020300000000000000000000000000", dir); /* as whoever makes it leaves it for an instant */
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    a = ask_for("begun", 100, LEDGER_NO_GUARANTEE);
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), 0);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), -EIO);
    setenv("REMAT_GROUP_DIR", "/proc/nowhere", 1);
    ck_assert_int_lt(ledger_may_join(&a, err, sizeof err), 0);
    ck_assert_ptr_nonnull(strstr(err, "/proc/nowhere"));
    setenv("REMAT_GROUP_DIR", dir, 1);
}
END_TEST

START_TEST(full)
{
    int hold[2], ready[2];
    ck_assert(!pipe(hold) && !pipe(ready));
    for (int i = 0; i < LEDGER_ROWS; i++)
        if (fork() == 0) {
            char c = join("full", 100, LEDGER_NO_GUARANTEE) ? 'y' : 'n';
            close(hold[1]);
            if (write(ready[1], &c, 1) < 0)
                _exit(1);
            _exit((int)read(hold[0], &c, 1)); /* until the parent is done */
        }
    for (int i = 0; i < LEDGER_ROWS; i++) {
        char c = 0;
        ck_assert_int_eq(read(ready[0], &c, 1), 1);
        ck_assert_int_eq(c, 'y');
    }
    struct ledger_ask a = ask_for("full", 100, LEDGER_NO_GUARANTEE);
    struct ledger *l;
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), -ENOSPC);
    ck_assert_int_eq(ledger_join(&a, &l, err, sizeof err), -ENOSPC);
    close(hold[0]);
    close(hold[1]);
    while (wait(NULL) > 0)
        ;
    ck_assert_int_eq(ledger_may_join(&a, err, sizeof err), 0);
}
END_TEST

/* ---- many at once, killed at any point ------------------------------------------------------------------------------- */

enum { PROCESSES = 6, LIMIT = 1000, KILLS = 60 };

struct witness { /* what each has mapped, as it says itself */
    _Atomic uint64_t mapped[PROCESSES], releases, over, steps;
    _Atomic int64_t pid[PROCESSES];
};

static bool is_zombie(int64_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%*d %*s %c", &state) != 1)
        state = 'Z';
    if (f)
        fclose(f);
    return state == 'Z' || state == 'X';
}

/* Bytes on their way from one to another may be seen at both: then a release lay in between, and the sum says nothing. */
static void look(struct witness *w)
{
    uint64_t before = w->releases, sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += w->mapped[i];
    if (sum <= LIMIT)
        return;
    for (int i = 0; i < PROCESSES; i++)
        if (is_zombie(w->pid[i])) /* its device memory is gone with it */
            return;
    if (w->releases == before)
        w->over++;
}

static void work(struct witness *w, int me, unsigned seed)
{
    w->mapped[me] = 0;
    w->releases++; /* in between, as below: who has seen the old sum sees this too, or the old process */
    w->pid[me] = getpid();
    struct ledger *l = join("many", LIMIT, me == 0 ? 300 : LEDGER_NO_GUARANTEE);
    if (!l)
        _exit(1);
    for (;;) {
        uint64_t n = (uint64_t)(rand_r(&seed) % 120) + 1, have = w->mapped[me];
        bool blocked;
        if (rand_r(&seed) % 2 && !ledger_reserve(l, n))
            w->mapped[me] = have + n;
        else if (have >= n || (n = ledger_owed(l, &blocked))) {
            n = n < have ? n : have;
            w->mapped[me] = have - n;
            w->releases++; /* in between: whoever gets them maps them after it */
            ledger_release(l, n);
        } else
            ledger_want(l, n % 3 ? 300 : 0, false);
        look(w);
        w->steps++;
    }
}

START_TEST(many_killed_at_any_point)
{
    struct witness *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(w, MAP_FAILED);
    pid_t pid[PROCESSES];
    unsigned seed = 1;
    for (int i = 0; i < PROCESSES; i++)
        if ((pid[i] = fork()) == 0)
            work(w, i, (unsigned)i + 1);
    for (int k = 0; k < KILLS; k++) {
        uint64_t then = w->steps;
        while (w->steps < then + 2000)
            usleep(500 + rand_r(&seed) % 500);
        int i = k % PROCESSES;
        kill(pid[i], SIGKILL);
        usleep(rand_r(&seed) % 2000); /* dead, and not yet reaped, for a while */
        waitpid(pid[i], NULL, 0);
        if ((pid[i] = fork()) == 0)
            work(w, i, (unsigned)(k + 1) * PROCESSES);
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
    ck_assert_uint_eq(w->over, 0);
    struct member all = member_new("many", LIMIT, LEDGER_NO_GUARANTEE); /* nothing was lost */
    ck_assert_uint_eq(tell(&all, 'r', LIMIT), 0);
    member_kill(&all, true);
}
END_TEST

/* A sleeper is woken by a release, and by an ask. */
static void *sleeper(void *p)
{
    const struct ledger_page *page = p;
    while (!ledger_asked(page, 0))
        ledger_sleep(page, true, 0, 10000);
    return NULL;
}

START_TEST(asks_wake)
{
    struct ledger *l = join("wake", 100, 50);
    ck_assert_ptr_nonnull(l);
    pthread_t t;
    uint32_t seen = ledger_page(l)->asked;
    if (seen == 0) {
        ck_assert_int_eq(pthread_create(&t, NULL, sleeper, (void *)ledger_page(l)), 0);
        usleep(10000);
        ledger_want(l, 50, false);
        pthread_join(t, NULL);
    }
    ck_assert(ledger_asked(ledger_page(l), seen));
    ledger_leave(l);
}
END_TEST

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    setenv("REMAT_GROUP_DIR", dir, 1);
    Suite *s = suite_create("ledger");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, one_budget);
    tcase_add_test(t, the_dead_keep_nothing);
    tcase_add_test(t, killed_while_joining);
    tcase_add_test(t, without_descriptors_alive);
    tcase_add_test(t, guarantees);
    tcase_add_test(t, refusals);
    tcase_add_test(t, full);
    tcase_add_test(t, many_killed_at_any_point);
    tcase_add_test(t, asks_wake);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
    return failed ? 1 : 0;
}
