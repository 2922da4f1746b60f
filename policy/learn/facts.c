#include "policy/learn/facts.h"
#include "policy/learn/earlier.h"
#include "policy/learn/learn.h"
#include "policy/learn/words.h"
#include "policy/memory/slot.h"
#include "policy/op/code.h"

#include <stdlib.h>
#include <string.h>

static struct known *table;

const char facts_differs[] = "does not repeat bit for bit", facts_updates[] = "changes only what outlives the iteration";
static const char *const WHYS[STORE_WHYS] = {facts_differs, facts_updates};
static const struct known_whys whys = {WHYS, STORE_WHYS};

static const char *const USES[] = {"idle", "not changed", "read", "changed aside", "overwritten", "written in part", "changed"};

void facts_lesson(void)
{
    if (table)
        known_lesson(table);
}

void facts_settle(struct device *d)
{
    if (!table)
        return;
    known_settle(table);
    earlier_keep(d, table, whys);
}

/* Code that has no identity beyond this process is told by its handle there; the first word tells the two sorts apart. */
static struct known_kernel *kernel_of(struct device *d, const struct func *f, struct facts *x)
{
    x->of_image = d->cfg->cache_dir[0] && code_of(d, f, &x->code);
    if (x->of_image)
        earlier_facts(d, table, x->code, whys);
    else
        x->code = (struct known_code){{(uintptr_t)f, (uint64_t)d->dev + 1}};
    return known_kernel(table, x->code, f->name);
}

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x100000001b3ull; }

/* What else makes it another launch, but for code, arguments, grid and block. */
static uint64_t also(const struct rt_op *op)
{
    uint64_t h = mix(mix(0xcbf29ce484222325ull, op->shared_bytes), op->packed);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const CUlaunchAttributeValue *v = &op->attrs[i].value;
        h = mix(h, op->attrs[i].id);
        if (op->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            h = mix(mix(mix(h, v->clusterDim.x), v->clusterDim.y), v->clusterDim.z);
    }
    return h;
}

static enum known_before before(const struct touched *u)
{
    if (u->row)
        return u->blank ? KNOWN_BLANK : KNOWN_PARTLY;
    return u->old_life ? KNOWN_OLD : KNOWN_DEFINED;
}

static uint64_t blank_of(const struct touched *u)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (uint32_t i = 0; u->row && !u->blank && i < u->row->b.n; i++)
        h = mix(mix(h, u->row->b.r[i].from), u->row->b.r[i].to);
    return u->row && !u->blank ? h : 0;
}

/* The memset right before the launch decides what the launch may find in the buffer. */
static uint64_t filled(uint64_t h, const struct touched *u)
{
    if (!u->filled)
        return h;
    const struct eng_memset *m = &u->filled->set;
    const uint64_t all[] = {m->dst - u->slot->va, m->pitch_bytes, m->value, m->elem_bytes, m->width, m->height};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        h = mix(h, all[i]);
    return h;
}

/* The op's operands as words of a launch. False: a buffer is written in too many pieces to say which. */
static bool fill_words(struct facts *x, const struct trial *t)
{
    const struct rt_op *op = t->op;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *w = &op->operands[i];
        uint32_t k = 0, first = 0;
        while (k < t->n && t->u[k].slot != w->slot)
            k++;
        if (k == t->n || (t->u[k].row && t->u[k].row->scattered))
            return false;
        while (x->touched[first] != k && first < i)
            first++;
        x->touched[i] = k;
        x->words[i] = (struct known_word){.offset = w->offset,
                                          .same_as = first,
                                          .delta = w->delta,
                                          .bytes = w->slot->bytes,
                                          .map = w->map,
                                          .before = (uint8_t)before(&t->u[k]),
                                          .blank = filled(blank_of(&t->u[k]), &t->u[k])};
    }
    return true;
}

void facts_open(struct facts *x, const struct trial *t)
{
    const struct rt_op *op = t->op;
    *x = (struct facts){0};
    if (t->d->cfg->known == FACTS_OFF)
        return;
    if (!table && !(table = known_new()))
        return;
    struct known_kernel *k = kernel_of(t->d, op->func, x);
    x->words = malloc((op->n_operands + 1) * sizeof *x->words);
    x->taken = malloc(op->n_operands + 1);
    x->touched = malloc((op->n_operands + 1) * sizeof *x->touched);
    if (!k || !x->words || !x->taken || !x->touched || !fill_words(x, t))
        return;
    x->kernel = k;
    x->launch = (struct known_launch){.args = op->args, .words = x->words, .arg_bytes = op->arg_bytes, .n_words = op->n_operands, .also = also(op)};
    memcpy(x->launch.grid, op->grid, sizeof op->grid);
    memcpy(x->launch.block, op->block, sizeof op->block);
    struct known_facts says = {.use = x->taken};
    x->state = known_ask(table, k, &x->launch, &says);
    x->why = says.why;
    x->left = says.left;
    x->n_left = says.n_left;
    x->freely = says.freely;
    x->but_numbers = says.but_numbers;
    struct stats *st = &t->d->st;
    *(x->state == KNOWN_FULLY ? &st->facts_known : x->state == KNOWN_LIKE ? &st->facts_like : &st->facts_unknown) += 1;
}

bool facts_suffice(const struct facts *x, const struct trial *t, bool checked)
{
    const struct config *c = t->d->cfg;
    const bool step = x->but_numbers && x->why == facts_updates && x->launch.n_words > LEARN_FEW;
    return (x->state == KNOWN_FULLY || (x->of_image && checked && (x->freely || step))) && c->known == FACTS_USE && !c->trace_mode && words_are_known(t, x->taken);
}

void facts_left(const struct facts *x, uint32_t k, struct blank *left)
{
    left->n = 0;
    for (uint32_t i = 0, w = 0; i < x->n_left && left->n < BLANK_MAX; i++) {
        while (w < x->launch.n_words && x->words[w].offset < x->left[i].offset)
            w++;
        if (w < x->launch.n_words && x->words[w].offset == x->left[i].offset && x->touched[w] == k)
            left->r[left->n++] = (struct rec_range){x->left[i].from, x->left[i].to};
    }
}

enum known_use facts_use(const struct facts *x, uint32_t k)
{
    enum known_use most = KNOWN_IDLE;
    for (uint32_t i = 0; i < x->launch.n_words; i++)
        if (x->touched[i] == k && x->taken[i] > most)
            most = (enum known_use)x->taken[i];
    return most;
}

static void say_contradicted(const struct facts *x, const struct trial *t, uint32_t word, const char *what)
{
    t->d->st.facts_contradicted++;
    log_say(SAY_DEBUG, "%s was %s: the buffer of argument byte %u is %s, not %s", t->op->func->name, x->state == KNOWN_LIKE ? "taken to be like others" : "known",
            x->words[word].offset, what, USES[x->taken[word]]);
}

void facts_surprise(struct facts *x, const struct trial *t, uint32_t k)
{
    uint32_t i = 0;
    while (i + 1 < x->launch.n_words && x->touched[i] != k)
        i++;
    say_contradicted(x, t, i, USES[KNOWN_IN_PLACE]);
    known_surprise(table, x->kernel, &x->launch);
    if (x->of_image)
        earlier_changed(x->code);
}

/* The mode that the trial left for the buffer. */
static enum rec_mode mode_of(const struct rt_op *op, const struct slot *s)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot == s)
            return (enum rec_mode)op->operands[i].mode;
    return REC_UNKNOWN;
}

static enum known_use use_of(const struct trial *t, uint32_t operand, uint32_t touched)
{
    const struct touched *u = &t->u[touched];
    if (t->word[operand] == KNOWN_IDLE)
        return KNOWN_IDLE;
    if (!u->changed)
        return (enum known_use)t->word[operand];
    if (t->partial[touched])
        return KNOWN_IN_PART;
    if (u->blank)
        return KNOWN_WHOLE;
    return mode_of(t->op, u->slot) == REC_SIDE ? KNOWN_SIDE : KNOWN_IN_PLACE;
}

/* What nobody has written of the launch's buffers, by the first word that leads to each and is not idle. Their number; more than KNOWN_LEFT_MOST: there
 * is no room for them. */
static uint32_t left_of(const struct facts *x, const struct trial *t, const uint8_t *use, struct known_range *left)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->launch.n_words; i++) {
        const struct slot *s = t->u[x->touched[i]].slot;
        const struct blank_row *row = rows_of(t->d, s, false);
        bool first = use[i] != KNOWN_IDLE;
        for (uint32_t j = 0; j < i && first && row; j++)
            first = x->touched[j] != x->touched[i] || use[j] == KNOWN_IDLE;
        for (uint32_t r = 0; first && row && !row->scattered && r < row->b.n; r++, n++)
            if (n < KNOWN_LEFT_MOST)
                left[n] = (struct known_range){.offset = x->words[i].offset, .from = row->b.r[r].from, .to = row->b.r[r].to};
        if (first && row && row->scattered)
            return KNOWN_LEFT_MOST + 1;
    }
    return n;
}

static bool is_other(const struct facts *x, const uint8_t *use, const char *why, uint32_t *at)
{
    for (*at = 0; *at < x->launch.n_words; ++*at)
        if (!known_use_covers(x->taken[*at], use[*at]))
            return true;
    return why && why != x->why;
}

/* What the table said before the trial against what the trial found. */
static void compare(const struct facts *x, const struct trial *t, const uint8_t *use, const char *why)
{
    uint32_t at = 0;
    if (x->state == KNOWN_NOT || !is_other(x, use, why, &at))
        return;
    if (at < x->launch.n_words) {
        say_contradicted(x, t, at, USES[use[at]]);
        return;
    }
    t->d->st.facts_contradicted++;
    log_say(SAY_DEBUG, "%s was %s, and now it %s", t->op->func->name, x->state == KNOWN_LIKE ? "taken to be like others" : "known", why);
}

void facts_enter(struct facts *x, struct trial *t, const char *why, const uint32_t *idle, uint32_t n_idle, uint64_t ns)
{
    enum known_news news;
    uint8_t *use = x->kernel ? malloc(x->launch.n_words + 1) : NULL;
    if (!use)
        return;
    bool any = false; /* a launch that changed nothing says nothing of what it may do for other data */
    for (uint32_t i = 0; i < x->launch.n_words; i++) {
        use[i] = (uint8_t)use_of(t, i, x->touched[i]);
        any |= use[i] > KNOWN_READ;
    }
    compare(x, t, use, why);
    struct known_range left[KNOWN_LEFT_MOST];
    const uint32_t n_left = left_of(x, t, use, left);
    const struct known_facts did = {.left = left, .n_left = n_left, .use = use, .why = why, .idle = idle, .n_idle = n_idle, .ns = ns};
    if (any && !known_enter(table, x->kernel, &x->launch, &did, &news) && x->of_image) /* what is not entered stays unknown */
        earlier_changed(x->code);
    free(use);
}

void facts_close(struct facts *x)
{
    free(x->words);
    free(x->taken);
    free(x->touched);
    *x = (struct facts){0};
}

void facts_distrust(struct device *d, const struct func *f)
{
    struct facts x;
    struct known_kernel *k = table && f && d->cfg->known != FACTS_OFF ? kernel_of(d, f, &x) : NULL;
    if (!k || !x.of_image)
        return;
    known_distrust(k);
    earlier_changed(x.code);
    earlier_keep(d, table, whys);
}
