#include "tests/programs/api/order.h"

#include <stdio.h>

static const char *stream_name(const struct program *p, int s, char *text)
{
    static const char *const kinds[] = {"-", "free", "blocking", "legacy", "thread", "short"};
    sprintf(text, "%s%d", kinds[p->start.kind[s]], s);
    return text;
}

static const char *const memories[] = {"pool", "plain", "mapped", "managed", "pinned", "remote", "named", "array"};

void print_program(const struct program *p)
{
    char name[32];
    static uint32_t words[MAX_TENSORS];
    printf("seed %llu: %d steps\n", (unsigned long long)p->seed, p->n_steps);
    for (int i = 0; i < p->n_steps; i++) {
        const struct step *s = &p->step[i];
        const struct verb_row *v = &verb_row[s->verb];
        printf("%5d  %s", i, v->name);
        if (s->verb == V_ALLOC || s->verb == V_ALLOC_SYNC || s->verb == V_BESIDE_CAPTURE)
            words[s->t[0]] = s->value;
        for (int k = 0; k < OPERANDS; k++)
            if (s->t[k] >= 0)
                printf("%s t%d[%u]", k && s->t[k - 1] >= 0 ? "," : "", s->t[k], words[s->t[k]]);
        if (v->host_reads || v->host_writes || s->verb == V_HOST_READ || s->verb == V_HOST_WRITE)
            printf(" host%d", s->host);
        if (s->verb == V_ALLOC_SYNC)
            printf(" %s", memories[s->how]);
        if (s->verb >= V_GRAPH_MAKE && s->verb <= V_SURFACE)
            printf(" no. %d", s->event);
        if (s->how && s->verb != V_ALLOC_SYNC)
            printf(" way %d", s->how);
        if (s->context)
            printf(" in %s", s->context == CONTEXT_GREEN ? "green" : "second device");
        if (s->verb >= V_RECORD && s->verb <= V_POLL_EVENT)
            printf(" event%d", s->event);
        if (v->on_legacy)
            printf(" on %s", stream_name(p, 0, name));
        else if (v->on_stream || s->verb == V_SYNC || s->verb == V_POLL || s->verb == V_CREATE || s->verb == V_DESTROY)
            printf(" on %s", stream_name(p, s->stream, name));
        printf("%s\n", s->thread ? "  (second thread)" : "");
    }
}
