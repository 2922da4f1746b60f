#include "offline/solvers/milp/milp.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
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

#include <coin/Cbc_C_Interface.h>

struct milp {
    int n_cols, cols_room, n_rows, rows_room, err;
    double *lo, *hi, *cost;
    char *integer;
    double *row_lo, *row_hi;
    int *row_first; /* n_rows + 1 */
    int n_terms, terms_room;
    int *term_col;
    double *term;
};

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

/* CBC wants the matrix by columns. */
static int load(const struct milp *m, Cbc_Model *cbc)
{
    size_t nc = (size_t)m->n_cols, nz = (size_t)m->n_terms;
    CoinBigIndex *start = calloc(nc + 2, sizeof *start);
    int *row = malloc((nz + 1) * sizeof *row);
    double *val = malloc((nz + 1) * sizeof *val);
    int r = -ENOMEM;
    if (!start || !row || !val)
        goto out;
    for (size_t k = 0; k < nz; k++)
        start[m->term_col[k] + 2]++;
    for (size_t c = 0; c < nc; c++)
        start[c + 2] += start[c + 1];
    for (int i = 0; i < m->n_rows; i++)
        for (int k = m->row_first[i]; k < m->row_first[i + 1]; k++) {
            CoinBigIndex at = start[m->term_col[k] + 1]++;
            row[at] = i;
            val[at] = m->term[k];
        }
    Cbc_loadProblem(cbc, m->n_cols, m->n_rows, start, row, val, m->lo, m->hi, m->cost, m->row_lo, m->row_hi);
    r = 0;
out:
    free(start);
    free(row);
    free(val);
    return r;
}

static int warm_start(const struct milp *m, Cbc_Model *cbc, const double *x)
{
    int *idx = malloc(((size_t)m->n_cols + 1) * sizeof *idx), n = 0;
    double *val = malloc(((size_t)m->n_cols + 1) * sizeof *val);
    for (int c = 0; idx && val && c < m->n_cols; c++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", c);
        Cbc_setColName(cbc, c, name); /* CBC finds the start's columns by name */
        if (m->integer[c]) {
            idx[n] = c;
            val[n++] = x[c];
        }
    }
    int r = idx && val ? 0 : -ENOMEM;
    if (!r)
        Cbc_setMIPStartI(cbc, n, idx, val);
    free(idx);
    free(val);
    return r;
}

static void set_real(Cbc_Model *cbc, const char *name, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", x);
    Cbc_setParameter(cbc, name, text);
}

static int take_solution(const struct milp *m, const double *x, struct milp_result *r)
{
    if (!x)
        return 0;
    r->x = malloc(((size_t)m->n_cols + 1) * sizeof *r->x);
    if (!r->x)
        return -ENOMEM;
    memcpy(r->x, x, (size_t)m->n_cols * sizeof *r->x);
    r->value = 0;
    for (int c = 0; c < m->n_cols; c++)
        r->value += m->cost[c] * x[c];
    return 0;
}

/* In the child: solves and leaves the result in *r. */
static int solve_here(const struct milp *m, const struct milp_opts *o, double seconds, int plain, struct milp_result *r)
{
    Cbc_Model *cbc = Cbc_newModel();
    int e = cbc ? load(m, cbc) : -ENOMEM;
    if (e)
        return e;
    Cbc_setLogLevel(cbc, 0);
    Cbc_setParameter(cbc, "logLevel", "0");
    Cbc_setParameter(cbc, "timeMode", "elapsed");
    if (plain) {
        Cbc_setParameter(cbc, "preprocess", "off");
        Cbc_setParameter(cbc, "presolve", "off");
    }
    if (!o->relaxed)
        for (int c = 0; c < m->n_cols; c++)
            if (m->integer[c])
                Cbc_setInteger(cbc, c);
    if (seconds > 0)
        set_real(cbc, "seconds", seconds);
    if (o->cost_step > 0)
        set_real(cbc, "allowableGap", 0.999 * o->cost_step);
    if (o->cutoff > 0)
        set_real(cbc, "cutoff", o->cutoff);
    if (o->max_nodes > 0)
        set_real(cbc, "maxNodes", o->max_nodes);
    if (o->ratio_gap > 0)
        set_real(cbc, "ratioGap", o->ratio_gap);
    if (o->start && !o->relaxed)
        e = warm_start(m, cbc, o->start);
    if (e)
        return e;
    Cbc_solve(cbc);
    if (o->relaxed) {
        if (Cbc_isProvenOptimal(cbc)) {
            e = take_solution(m, Cbc_getColSolution(cbc), r);
            r->status = MILP_OPTIMAL;
            r->bound = r->value;
        } else if (Cbc_isProvenInfeasible(cbc)) {
            r->status = MILP_INFEASIBLE;
        }
        return e;
    }
    e = take_solution(m, Cbc_bestSolution(cbc), r);
    /* with a start as good as the optimum the root is "infeasible" below it, so look for a solution first */
    if (!r->x && (Cbc_isProvenInfeasible(cbc) || Cbc_isInitialSolveProvenPrimalInfeasible(cbc))) {
        r->status = MILP_INFEASIBLE;
        return e;
    }
    if (r->x && Cbc_isProvenOptimal(cbc) && o->ratio_gap == 0) {
        r->status = MILP_OPTIMAL;
        r->bound = r->value;
    } else {
        double b = Cbc_getBestPossibleObjValue(cbc);
        r->status = r->x ? MILP_FEASIBLE : MILP_UNKNOWN;
        if (isfinite(b) && fabs(b) < MILP_NONE)
            r->bound = b;
        if (r->x && r->bound > r->value)
            r->bound = r->value;
    }
    return e;
}

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

/* Without a time limit a search that never ended would keep the caller for good: CBC gets many times what the largest program here
 * takes, of its own time on the processor, so that other people's work does not count. */
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
    int e = solve_here(m, o, seconds, plain, &r);
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

/* The process that solves. A copy of one with several threads may find a lock held for ever by a thread that was not copied (the
 * allocators of sanitizers, libraries): it sleeps then, and would be waited for without end. */
struct apart {
    pid_t pid;
    int fd;
    double until;     /* 0: no end */
    int64_t cpu_ns;   /* that it had used when it was last looked at */
    int idle_seconds; /* since when it has used none */
};
enum { STUCK_AFTER_S = 10, STARTED_AGAIN = 3 };

static bool is_stuck(struct apart *a)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(a->pid, &clock) || clock_gettime(clock, &t))
        return false; /* it has ended: the pipe says so */
    int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    a->idle_seconds = ns == a->cpu_ns ? a->idle_seconds + 1 : 0;
    a->cpu_ns = ns;
    return a->idle_seconds >= STUCK_AFTER_S;
}

/* 0: all n bytes came; -EIO: the child ended first; -ETIME; -EAGAIN: it is stuck. */
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

/* -EIO: CBC broke down; -EAGAIN: it never got to work. */
static int solve_once(const struct milp *m, const struct milp_opts *o, double until, int plain, struct milp_result *r)
{
    int fd[2];
    /* CBC looks at the clock between steps, some of which are long: it gets less than there is */
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
    int e = m->err;
    for (int plain = 0; plain < 2; plain++) {
        memset(r, 0, sizeof *r);
        r->status = MILP_UNKNOWN;
        r->bound = -MILP_NONE;
        if (!e)
            e = solve_apart(m, o, until, plain, r);
        if (e != -EIO)
            break;
        e = 0; /* its preprocessing is what breaks down, when time runs out within it: once more without */
        if (until > 0 && until - now_s() < 0.2 * o->time_limit_s)
            break;
    }
    return e == -ETIME || e == -EAGAIN ? 0 : e;
}
