#include "offline/solvers/milp/milp_cbc.h"

#include "offline/model/beside.h"
#include "tracer/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct milp *milp_new(void)
{
    struct milp *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->row_first = calloc(1, sizeof *m->row_first);
    if (!m->row_first) {
        free(m);
        return NULL;
    }
    return m;
}

void milp_free(struct milp *m)
{
    if (!m)
        return;
    free(m->lo);
    free(m->hi);
    free(m->cost);
    free(m->integer);
    free(m->row_lo);
    free(m->row_hi);
    free(m->row_first);
    free(m->term_col);
    free(m->term);
    free(m);
}

static int grow(struct milp *m, void *array, size_t elem, int room)
{
    void **p = array, *q = realloc(*p, elem * (size_t)room);
    if (!q) {
        m->err = m->err ? m->err : -ENOMEM;
        return -ENOMEM;
    }
    *p = q;
    return 0;
}

int milp_col(struct milp *m, double lo, double hi, double cost, int integer)
{
    if (m->n_cols == m->cols_room) {
        int room = m->cols_room ? 2 * m->cols_room : 256;
        if (grow(m, &m->lo, sizeof *m->lo, room) || grow(m, &m->hi, sizeof *m->hi, room) ||
            grow(m, &m->cost, sizeof *m->cost, room) || grow(m, &m->integer, 1, room))
            return -ENOMEM;
        m->cols_room = room;
    }
    m->lo[m->n_cols] = lo;
    m->hi[m->n_cols] = hi;
    m->cost[m->n_cols] = cost;
    m->integer[m->n_cols] = (char)integer;
    return m->n_cols++;
}

int milp_row(struct milp *m, double lo, double hi)
{
    if (m->n_rows == m->rows_room) {
        int room = m->rows_room ? 2 * m->rows_room : 256;
        if (grow(m, &m->row_lo, sizeof *m->row_lo, room) || grow(m, &m->row_hi, sizeof *m->row_hi, room) ||
            grow(m, &m->row_first, sizeof *m->row_first, room + 1))
            return -ENOMEM;
        m->rows_room = room;
    }
    m->row_lo[m->n_rows] = lo;
    m->row_hi[m->n_rows] = hi;
    m->n_rows++;
    m->row_first[m->n_rows] = m->n_terms;
    return m->n_rows - 1;
}

int milp_term(struct milp *m, int col, double coef)
{
    if (col < 0 || col >= m->n_cols || !m->n_rows) {
        m->err = m->err ? m->err : -EINVAL;
        return -EINVAL;
    }
    for (int k = m->row_first[m->n_rows - 1]; k < m->n_terms; k++)
        if (m->term_col[k] == col) {
            m->term[k] += coef;
            return 0;
        }
    if (m->n_terms == m->terms_room) {
        int room = m->terms_room ? 2 * m->terms_room : 1024;
        if (grow(m, &m->term_col, sizeof *m->term_col, room) || grow(m, &m->term, sizeof *m->term, room))
            return -ENOMEM;
        m->terms_room = room;
    }
    m->term_col[m->n_terms] = col;
    m->term[m->n_terms++] = coef;
    m->row_first[m->n_rows] = m->n_terms;
    return 0;
}

int milp_n_cols(const struct milp *m) { return m->n_cols; }
int milp_n_rows(const struct milp *m) { return m->n_rows; }

void milp_bounds(struct milp *m, int col, double lo, double hi)
{
    if (col < 0 || col >= m->n_cols) {
        m->err = m->err ? m->err : -EINVAL;
        return;
    }
    m->lo[col] = lo;
    m->hi[col] = hi;
}

void milp_result_free(struct milp_result *r)
{
    free(r->x);
    r->x = NULL;
}

/* ---- CBC is loaded when the first program is solved ------------------------------------------------------------------------------- */

static const struct milp_cbc *cbc; /* NULL: load_err, load_why */
static int load_err;
static char load_why[PATH_MAX + 256];

static void load_cbc(void)
{
    char path[PATH_MAX];
    void *lib;
    if (&milp_cbc) {
        cbc = &milp_cbc;
        return;
    }
    load_err = -ELIBACC;
    if (beside_find(MILP_CBC_FILE, path, sizeof path)) {
        snprintf(load_why, sizeof load_why, MILP_CBC_FILE " is neither beside this executable nor in ../lib or ../lib/remat");
        return;
    }
    const struct milp_cbc *found = (lib = loader_open(path, RTLD_LAZY | RTLD_LOCAL)) ? loader_symbol(lib, "milp_cbc") : NULL;
    if (!found) {
        const char *said = loader_error();
        snprintf(load_why, sizeof load_why, "%s", said ? said : path);
    } else if (strcmp(found->version, REMAT_VERSION)) {
        load_err = -ELIBBAD;
        snprintf(load_why, sizeof load_why, "%s is of remat %s, not " REMAT_VERSION, path, found->version);
    } else {
        cbc = found;
        load_err = 0;
    }
}

int milp_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_cbc);
    return load_err;
}

const char *milp_error(int err)
{
    return err == load_err && *load_why ? load_why : strerror(-err);
}

/* ---- in a process of its own ----------------------------------------------------------------------------------------------------- */

struct answer {
    int err, status, has_x;
    double value, bound;
};

static void write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k <= 0 && errno != EINTR)
            return;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
}

/* CPU seconds for CBC where no time limit is given, so that a search that never ends does not keep the caller for good: many times
 * the need of the largest program here. CPU time, so that other processes' work does not count. */
enum { CPU_MOST_S = 120 };

static void guard(void)
{
    const struct rlimit no_core = {0, 0}, cpu = {CPU_MOST_S, CPU_MOST_S};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu);
}

static void child(const struct milp *m, const struct milp_opts *o, double seconds, int plain, int fd)
{
    struct milp_result r = { .status = MILP_UNKNOWN, .bound = -MILP_NONE };
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (seconds <= 0)
        guard();
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
    }
    int e = cbc->solve(m, o, seconds, plain, &r);
    struct answer a = { e, r.status, r.x != NULL, r.value, r.bound };
    write_all(fd, &a, sizeof a);
    if (a.has_x)
        write_all(fd, r.x, (size_t)m->n_cols * sizeof *r.x);
    _exit(0);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The child process that solves. A child forked from a process with several threads may find a lock held for ever by a thread that
 * was not copied (the allocators of sanitizers, libraries): such a child sleeps without end. */
struct apart {
    pid_t pid;
    int fd;
    double until;     /* deadline, now_s() clock; 0: none */
    int64_t cpu_ns;   /* CPU time that the child had used at the last look */
    int idle_seconds; /* looks in a row, about a second apart, without CPU time used */
};
enum { STUCK_AFTER_S = 10, STARTED_AGAIN = 3 };

static bool is_stuck(struct apart *a)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(a->pid, &clock) || clock_gettime(clock, &t))
        return false; /* the child has ended: the pipe says so */
    int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    a->idle_seconds = ns == a->cpu_ns ? a->idle_seconds + 1 : 0;
    a->cpu_ns = ns;
    return a->idle_seconds >= STUCK_AFTER_S;
}

/* 0: all n bytes came; -EIO: the child ended first; -ETIME; -EAGAIN: the child is stuck. */
static int read_all(struct apart *a, void *data, size_t n)
{
    char *p = data;
    while (n) {
        struct pollfd q = { a->fd, POLLIN, 0 };
        double left = a->until > 0 ? a->until - now_s() : 1;
        if (left <= 0)
            return -ETIME;
        if (poll(&q, 1, left < 1 ? (int)(left * 1000) + 1 : 1000) <= 0) {
            if (is_stuck(a))
                return -EAGAIN;
            continue;
        }
        ssize_t k = read(a->fd, p, n);
        if (k == 0 || (k < 0 && errno != EINTR))
            return -EIO;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return 0;
}

/* Solve in one child process. -EIO: CBC broke down; -EAGAIN: the child was stuck. */
static int solve_once(const struct milp *m, const struct milp_opts *o, double until, int plain, struct milp_result *r)
{
    int fd[2];
    /* CBC looks at the clock only between steps, some of which are long: it gets less than the time left */
    double seconds = until > 0 ? 0.8 * (until - now_s()) : 0;
    if (pipe2(fd, O_CLOEXEC))
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(m, o, seconds, plain, fd[1]);
    }
    int e = pid < 0 ? -errno : 0;
    close(fd[1]);
    struct apart from = { .pid = pid, .fd = fd[0], .until = until };
    struct answer a;
    if (!e)
        e = read_all(&from, &a, sizeof a);
    if (!e && a.has_x) {
        r->x = malloc(((size_t)m->n_cols + 1) * sizeof *r->x);
        e = r->x ? read_all(&from, r->x, (size_t)m->n_cols * sizeof *r->x) : -ENOMEM;
    }
    close(fd[0]);
    if (pid > 0) {
        if (e)
            kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (e) {
        milp_result_free(r);
        return e;
    }
    r->status = (enum milp_status)a.status;
    r->value = a.value;
    r->bound = a.bound;
    return a.err;
}

static int solve_apart(const struct milp *m, const struct milp_opts *o, double until, int plain, struct milp_result *r)
{
    int e = -EAGAIN;
    for (int i = 0; i < STARTED_AGAIN && e == -EAGAIN; i++)
        e = solve_once(m, o, until, plain, r);
    return e;
}

int milp_solve(struct milp *m, const struct milp_opts *o, struct milp_result *r)
{
    double until = o->time_limit_s > 0 ? now_s() + o->time_limit_s : 0;
    int e = m->err ? m->err : milp_load();
    for (int plain = 0; plain < 2; plain++) {
        memset(r, 0, sizeof *r);
        r->status = MILP_UNKNOWN;
        r->bound = -MILP_NONE;
        if (!e)
            e = solve_apart(m, o, until, plain, r);
        if (e != -EIO)
            break;
        e = 0; /* CBC breaks down when time runs out in its preprocessing: once more without it */
        if (until > 0 && until - now_s() < 0.2 * o->time_limit_s)
            break;
    }
    return e == -ETIME || e == -EAGAIN ? 0 : e;
}
