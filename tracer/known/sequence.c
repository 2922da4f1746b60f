/* sequence.c: see sequence.h. Matching is that of Knuth, Morris and Pratt: after a mismatch it goes on from the longest beginning that the last ops form. */
#include "tracer/known/sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sequence {
    struct sequence_about about;
    uint64_t *sigs, *irregular; /* [about.ops], [about.n_irregular] */
    uint32_t *again; /* [about.ops + 1] again[k]: length of the longest shorter beginning that ends the first k signatures */
    uint32_t at;     /* how many of the first signatures the last ops match */
    uint32_t most;   /* largest value of `at` so far */
    uint64_t begun;  /* ops fed before the match that reached `most` began */
};

struct sequences {
    struct sequence all[SEQUENCES_MOST];
    int n;
    uint64_t fed;
};

struct sequences *sequences_new(void) { return calloc(1, sizeof(struct sequences)); }

void sequences_free(struct sequences *s)
{
    for (int i = 0; s && i < s->n; i++) {
        free(s->all[i].sigs); /* `irregular` lies in the same memory */
        free(s->all[i].again);
    }
    free(s);
}

static size_t size_of(const struct sequence_about *a) { return sizeof *a + (a->ops + a->n_irregular) * sizeof(uint64_t); }

int sequence_write(const struct sequence_about *about, const uint64_t *sigs, const uint64_t *irregular, unsigned char **bytes, size_t *n)
{
    if (!about->ops || about->ops > SEQUENCE_OPS_MOST || about->n_irregular > SEQUENCE_WORDS_MOST)
        return -EFBIG;
    *n = size_of(about);
    if (!(*bytes = malloc(*n)))
        return -ENOMEM;
    memcpy(*bytes, about, sizeof *about);
    memcpy(*bytes + sizeof *about, sigs, about->ops * sizeof *sigs);
    if (about->n_irregular)
        memcpy(*bytes + sizeof *about + about->ops * sizeof *sigs, irregular, about->n_irregular * sizeof *irregular);
    return 0;
}

static void find_beginnings(struct sequence *q)
{
    q->again[0] = q->again[1] = 0;
    for (uint32_t i = 1, k = 0; i < q->about.ops; i++) {
        while (k && q->sigs[i] != q->sigs[k])
            k = q->again[k];
        k += q->sigs[i] == q->sigs[k];
        q->again[i + 1] = k;
    }
}

int sequence_add(struct sequences *s, const unsigned char *bytes, size_t n)
{
    struct sequence q = {0};
    if (n < sizeof q.about)
        return -EBADMSG;
    memcpy(&q.about, bytes, sizeof q.about);
    if (!q.about.ops || q.about.ops > SEQUENCE_OPS_MOST || q.about.n_irregular > SEQUENCE_WORDS_MOST || n != size_of(&q.about) || (!q.about.swap_ns && q.about.swap_ops) ||
        q.about.checked > 1 || q.about.needs_past > 1)
        return -EBADMSG;
    if (s->n == SEQUENCES_MOST)
        return -ENOSPC;
    q.sigs = malloc(n);
    q.again = malloc((q.about.ops + 1) * sizeof *q.again);
    if (!q.sigs || !q.again) {
        free(q.sigs);
        free(q.again);
        return -ENOMEM;
    }
    memcpy(q.sigs, bytes + sizeof q.about, n - sizeof q.about);
    q.irregular = q.sigs + q.about.ops;
    find_beginnings(&q);
    s->all[s->n++] = q;
    return 0;
}

void sequences_break(struct sequences *s)
{
    for (int i = 0; i < s->n; i++)
        s->all[i].at = 0;
}

static bool feed(struct sequence *q, uint64_t sig, uint64_t fed)
{
    if (q->at == q->about.ops)
        q->at = q->again[q->at];
    while (q->at && q->sigs[q->at] != sig)
        q->at = q->again[q->at];
    q->at += q->sigs[q->at] == sig;
    if (q->at > q->most) {
        q->most = q->at;
        q->begun = fed - q->at;
    }
    return q->at == q->about.ops;
}

int sequences_feed(struct sequences *s, uint64_t sig)
{
    int ended = -1;
    s->fed++;
    for (int i = 0; i < s->n; i++)
        if (feed(&s->all[i], sig, s->fed) && (ended < 0 || s->all[i].about.ops > s->all[ended].about.ops))
            ended = i;
    for (int i = 0; i < s->n && ended >= 0; i++)
        if (s->all[i].about.ops > s->all[ended].about.ops && s->all[i].at >= s->all[ended].about.ops)
            return -1;
    return ended;
}

int sequences_may_end(const struct sequences *s, uint64_t sig)
{
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        const struct sequence *q = &s->all[i];
        if (q->sigs[q->about.ops - 1] == sig && 2 * (uint64_t)q->most >= q->about.ops && s->fed - q->begun >= q->about.ops &&
            (best < 0 || q->about.ops > s->all[best].about.ops))
            best = i;
    }
    return best;
}

const struct sequence_about *sequence_about(const struct sequences *s, int which) { return &s->all[which].about; }

const uint64_t *sequence_sigs(const struct sequences *s, int which) { return s->all[which].sigs; }

bool sequence_is_irregular(const struct sequences *s, int which, uint64_t op, uint32_t offset)
{
    const struct sequence *q = &s->all[which];
    const uint64_t word = sequence_word(op, offset);
    uint64_t a = 0, b = q->about.n_irregular;
    while (a < b) {
        const uint64_t m = (a + b) / 2;
        if (q->irregular[m] < word)
            a = m + 1;
        else
            b = m;
    }
    return a < q->about.n_irregular && q->irregular[a] == word;
}
