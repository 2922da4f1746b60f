/* The record of an iteration: repairs in sealing, and a trace file that the reader of traces takes. */
#include "offline/model/graph.h"
#include "offline/model/trace_read.h"
#include "tracer/record.h"
#include "tracer/labels.h"
#include "tracer/trace_write.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct record r;
static void setup(void) { memset(&r, 0, sizeof r); }
static void teardown(void) { record_clear(&r); }

static int new_buf(uint64_t bytes)
{
    static uint64_t serial;
    int k = record_alloc(&r, bytes);
    serial++;
    return record_buf(&r, bytes, serial, serial, k);
}

START_TEST(read_and_write_of_one_buffer_is_in_place)
{
    int x = record_buf(&r, 4096, 1, 1, -1);
    record_op(&r, 1, "relu_", NULL, 0);
    record_operand(&r, x, 0, 0, REC_READ);
    record_operand(&r, x, 8, 0, REC_WRITE);
    ck_assert_int_eq(record_seal(&r), 0);
    ck_assert_int_eq(record_mode(&r, 0, x), REC_RMW);
    ck_assert_int_eq(r.operands[0].mode, REC_RMW);
}
END_TEST

START_TEST(first_touch_is_birth)
{
    int x = new_buf(1 << 20), y;
    record_op(&r, 1, "half", NULL, 0);
    record_operand(&r, x, 0, 0, REC_RMW); /* wrote a part of fresh memory */
    y = new_buf(1 << 20);
    record_op(&r, 2, "reader", NULL, 0);
    record_operand(&r, x, 0, 0, REC_READ);
    record_operand(&r, y, 8, 0, REC_READ); /* nothing has written y */
    record_free(&r, x);
    record_op(&r, 3, "later", NULL, 0);
    record_operand(&r, y, 0, 0, REC_READ);
    ck_assert_int_eq(record_seal(&r), 0);
    ck_assert_int_eq(record_mode(&r, 0, x), REC_WRITE);
    ck_assert_int_eq(r.bufs[x].born, 0);
    ck_assert_int_eq(r.bufs[x].dies, 2);
    ck_assert_int_eq(r.bufs[y].born, 1);
    ck_assert_ptr_null(r.ops[0].why_opaque);
    ck_assert_ptr_nonnull(r.ops[1].why_opaque);
    ck_assert_ptr_null(r.ops[2].why_opaque);
}
END_TEST

/* A layer, its loss and Adam, with a running mean, a hidden state that is carried on, weight decay that makes new gradients, and a gradient of
 * the iteration before. */
START_TEST(labels_say_what_a_buffer_is)
{
    enum { BYTES = 1 << 20 };
    int w = record_buf(&r, BYTES, 1, 1, -1), m = record_buf(&r, BYTES, 2, 2, -1), mean = record_buf(&r, 4096, 3, 3, -1);
    int hidden = record_buf(&r, BYTES, 4, 4, -1), old = record_buf(&r, BYTES, 5, 5, -1);
    record_free(&r, old);
    int w2 = record_buf(&r, BYTES, 6, 6, -1), shown = record_buf(&r, 256, 7, 7, -1);
    int y = new_buf(BYTES), loss, dy, g, decayed;
    record_op(&r, 1, "forward", NULL, 1);
    record_operand(&r, w, 0, 0, REC_READ);
    record_operand(&r, hidden, 8, 0, REC_READ);
    record_operand(&r, mean, 16, 0, REC_SIDE);
    record_operand(&r, y, 24, 0, REC_WRITE);
    record_op(&r, 2, "carry", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, hidden, 8, 0, REC_WRITE);
    loss = new_buf(4);
    record_op(&r, 3, "loss", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, w2, 16, 0, REC_READ);
    record_operand(&r, loss, 8, 0, REC_WRITE);
    dy = new_buf(BYTES);
    record_op(&r, 4, "loss_backward", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, dy, 8, 0, REC_WRITE);
    g = new_buf(BYTES);
    record_op(&r, 5, "backward", NULL, 1);
    record_operand(&r, dy, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_READ);
    record_operand(&r, g, 16, 0, REC_WRITE);
    record_free(&r, dy);
    record_free(&r, y);
    decayed = new_buf(BYTES);
    record_op(&r, 6, "weight_decay", NULL, 1);
    record_operand(&r, g, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_READ);
    record_operand(&r, decayed, 16, 0, REC_WRITE);
    record_operand(&r, shown, 24, 0, REC_READ); /* what a stack left there: a moment, which is no parameter */
    record_op(&r, 7, "moment", NULL, 1);
    record_operand(&r, decayed, 0, 0, REC_RMW); /* a launch over lists of tensors */
    record_operand(&r, m, 8, 0, REC_RMW);
    record_operand(&r, shown, 16, 0, REC_RMW);
    record_op(&r, 8, "step", NULL, 1);
    record_operand(&r, m, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_RMW);
    record_operand(&r, w2, 16, 0, REC_RMW);
    record_free(&r, decayed);
    record_seal(&r);
    struct labels l;
    ck_assert_int_eq(labels_of(&r, 4, &l), 0);
    const struct {
        int buf, kind;
    } want[] = {{w, LABEL_PARAM}, {w2, LABEL_PARAM}, {m, LABEL_STATE}, {mean, LABEL_STATE}, {hidden, LABEL_STATE}, {shown, LABEL_STATE},
                {old, LABEL_GRAD}, {y, LABEL_ACTIVATION}, {loss, LABEL_ACTIVATION}, {dy, LABEL_ACTIVATION}, {g, LABEL_GRAD}, {decayed, LABEL_ACTIVATION}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(l.kind[want[i].buf] == want[i].kind, "%zu: %s", i, labels_kind_name(l.kind[want[i].buf]));
    ck_assert_int_eq(l.first_bwd, 3);
    ck_assert_int_eq(l.first_opt, 5);
    labels_free(&l);
}
END_TEST

START_TEST(the_reader_takes_the_trace)
{
    int w = record_buf(&r, 3000001, 7, 7, -1), side = record_buf(&r, 64, 8, 8, -1);
    int x = new_buf(5 << 20), s;
    record_op(&r, 1, "forward \"quoted\"\n", NULL, 100);
    record_operand(&r, w, 0, 0, REC_READ);
    record_operand(&r, side, 8, 0, REC_SIDE);
    record_operand(&r, x, 16, 0, REC_WRITE);
    r.ops[0].ns = 12345;
    s = new_buf(100);
    r.bufs[s].small = r.bufs[side].small = true;
    record_op(&r, 2, "copy_dtoh", "copies to host memory", 100);
    record_operand(&r, x, 0, 0, REC_READ);
    record_operand(&r, s, 8, 0, REC_WRITE);
    r.ops[1].ns = 1000;
    record_free(&r, x);
    record_op(&r, 3, "update", NULL, 100);
    record_operand(&r, s, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_RMW);
    r.ops[2].ns = 50;
    record_free(&r, s);
    record_seal(&r);
    char path[] = "/tmp/remat-test-XXXXXX", err[400] = "";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (int pass = 0; pass < 2; pass++) {
        struct graph *g;
        ck_assert_int_eq(record_write(&r, path, pass ? 2 << 20 : 1), 0);
        ck_assert_msg(trace_read(path, &g, err, sizeof err) == 0, "%s", err);
        ck_assert_int_eq(g->n_ops, 3);
        ck_assert_int_eq(g->n_bufs, 4);
        ck_assert_int_eq(g->total_ns, 13395);
        ck_assert_int_eq(g->bufs[w].bytes, pass ? 4 << 20 : 3000001);
        ck_assert_int_eq(g->bufs[s].bytes, pass ? 0 : 100);
        ck_assert_int_eq(g->ops[1].opaque, 1);
        ck_assert_int_eq(g->bufs[x].dies, 2);
        graph_free(g);
    }
    /* what a planner of another process must know: which buffers never move, pages, and what is held beside them */
    r.page_bytes = 2 << 20;
    r.reserve_bytes = 6 << 20;
    ck_assert_int_eq(record_write(&r, path, 1), 0);
    json_t *t = json_load_file(path, 0, NULL), *meta = json_object_get(t, "meta"), *bufs = json_object_get(t, "buffers");
    ck_assert_int_eq(json_integer_value(json_object_get(meta, "page_bytes")), 2 << 20);
    ck_assert_int_eq(json_integer_value(json_object_get(meta, "reserve_bytes")), 6 << 20);
    ck_assert(json_is_true(json_object_get(json_array_get(bufs, (size_t)s), "fixed")));
    ck_assert_ptr_null(json_object_get(json_array_get(bufs, (size_t)w), "fixed"));
    json_decref(t);
    unlink(path);
}
END_TEST

START_TEST(an_unwritable_place_is_an_error)
{
    record_seal(&r);
    ck_assert_int_lt(record_write(&r, "/nonexistent/folder/trace.json", 1), 0);
}
END_TEST

/* What an H100's backward pass has and an optimizer's beginning resembles: a memset of a library's workspace, a product that works in one, the gradient of
 * a weight that two layers share, added up. And a loss that the script keeps, which is no gradient. */
START_TEST(labels_know_a_workspace_from_a_state)
{
    enum { BYTES = 1 << 20 };
    int w = record_buf(&r, BYTES, 1, 1, -1), zeroed = record_buf(&r, BYTES, 2, 2, -1), worked = record_buf(&r, BYTES, 3, 3, -1), m = record_buf(&r, BYTES, 4, 4, -1);
    int y = new_buf(BYTES), loss = new_buf(4), part = new_buf(BYTES), g = new_buf(BYTES), dy = new_buf(BYTES);
    record_op(&r, 1, "forward", NULL, 1);
    record_operand(&r, w, 0, 0, REC_READ);
    record_operand(&r, y, 8, 0, REC_WRITE);
    record_op(&r, 2, "loss", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, loss, 8, 0, REC_WRITE);
    record_op(&r, 3, "memset", NULL, 1);
    record_operand(&r, zeroed, 0, 0, REC_RMW);
    record_op(&r, 4, "product", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, worked, 8, 0, REC_RMW);
    record_operand(&r, part, 16, 0, REC_WRITE);
    record_op(&r, 5, "product", NULL, 1);
    record_operand(&r, y, 0, 0, REC_READ);
    record_operand(&r, zeroed, 8, 0, REC_READ);
    record_operand(&r, g, 16, 0, REC_WRITE);
    record_op(&r, 6, "add", NULL, 1);
    record_operand(&r, part, 0, 0, REC_READ);
    record_operand(&r, g, 8, 0, REC_RMW);
    record_op(&r, 7, "backward", NULL, 1);
    record_operand(&r, g, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_READ);
    record_operand(&r, dy, 16, 0, REC_WRITE);
    record_op(&r, 8, "other weight", NULL, 1);
    record_operand(&r, dy, 0, 0, REC_READ);
    const int g2 = new_buf(BYTES);
    record_operand(&r, g2, 8, 0, REC_WRITE);
    record_free(&r, part);
    record_free(&r, dy);
    record_free(&r, y);
    record_op(&r, 9, "moment", NULL, 1);
    record_operand(&r, g, 0, 0, REC_READ);
    record_operand(&r, m, 8, 0, REC_RMW);
    record_op(&r, 10, "step", NULL, 1);
    record_operand(&r, m, 0, 0, REC_READ);
    record_operand(&r, w, 8, 0, REC_RMW);
    record_seal(&r);
    struct labels l;
    ck_assert_int_eq(labels_of(&r, 4, &l), 0);
    const struct {
        int buf, kind;
    } want[] = {{w, LABEL_PARAM}, {m, LABEL_STATE}, {loss, LABEL_ACTIVATION}, {part, LABEL_ACTIVATION}, {g, LABEL_GRAD}, {g2, LABEL_GRAD}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(l.kind[want[i].buf] == want[i].kind, "%zu: %s", i, labels_kind_name(l.kind[want[i].buf]));
    ck_assert_int_eq(l.first_bwd, 2);
    ck_assert_int_eq(l.first_opt, 8);
    labels_free(&l);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("record");
    TCase *t = tcase_create("record");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, read_and_write_of_one_buffer_is_in_place);
    tcase_add_test(t, first_touch_is_birth);
    tcase_add_test(t, the_reader_takes_the_trace);
    tcase_add_test(t, labels_say_what_a_buffer_is);
    tcase_add_test(t, labels_know_a_workspace_from_a_state);
    tcase_add_test(t, an_unwritable_place_is_an_error);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
