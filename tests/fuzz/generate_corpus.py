#!/usr/bin/env python3
"""Broken traces, plans and instances, one fault each, made out of the golden files. Writes tests/corpus/ anew; names say
what is wrong, and start with the reader that must refuse the file: trace_, plan_ or instance_.

usage: generate_corpus.py"""
import copy
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "corpus")

TRACE = {
    "meta": {"format": "opgraph-1", "model": "tiny", "batch": 1},
    "buffers": [
        {"id": 0, "bytes": 8, "born": -1, "dies": None, "kind": "param"},
        {"id": 1, "bytes": 64, "born": 0, "dies": 2, "kind": "activation"},
        {"id": 2, "bytes": 32, "born": 1, "dies": None, "kind": "activation"},
    ],
    "ops": [
        {"id": 0, "name": "a", "phase": "fwd", "reads": [0], "writes": [1], "rmw": [], "side": [], "ns": 5},
        {"id": 1, "name": "b", "phase": "bwd", "reads": [1], "writes": [2], "rmw": [0], "side": [], "ns": 7},
    ],
}
PLAN = {"format": "plan-1", "trace": "", "solver": "none", "limit_bytes": 1000, "keep": [], "steps": [{"op": 0}, {"op": 1}]}
CHAIN = {"format": "rotor-chain-v1", "L": 2, "unit": "slots", "w_a": [1, 2, 1], "w_abar": [1, 2, 1], "w_delta": [1, 2, 1],
         "u_f": [3, 4], "u_b": [5, 6], "o_f": [0, 0], "o_b": [0, 0], "budget": 12, "slots": 12}


def text(obj):
    return json.dumps(obj, indent=1)


def changed(base, *path_and_value):
    """A copy with the member at the path set, or deleted if the value is ... (Ellipsis)."""
    obj = copy.deepcopy(base)
    at = obj
    for key in path_and_value[:-2]:
        at = at[key]
    if path_and_value[-1] is ...:
        del at[path_and_value[-2]]
    else:
        at[path_and_value[-2]] = path_and_value[-1]
    return text(obj)


def files():
    t, p, c = text(TRACE), text(PLAN), text(CHAIN)
    yield "trace_empty", ""
    yield "trace_not_json", "this is not a trace\n"
    yield "trace_truncated", t[: len(t) * 2 // 3]
    yield "trace_truncated_in_string", t[: t.index("opgraph") + 3]
    yield "trace_trailing_text", t + "\n}"
    yield "trace_duplicate_key", '{"meta": {"format": "opgraph-1"}, "meta": {}, "buffers": [], "ops": []}'
    yield "trace_nul_byte", t.replace("tiny", "ti\x00ny")
    yield "trace_bad_utf8", t.replace("tiny", "ti\udcffny")
    yield "trace_deep", "[" * 5000
    yield "trace_array", "[]"
    yield "trace_no_meta", changed(TRACE, "meta", ...)
    yield "trace_no_format", changed(TRACE, "meta", "format", ...)
    yield "trace_other_format", changed(TRACE, "meta", "format", "opgraph-2")
    yield "trace_no_buffers", changed(TRACE, "buffers", ...)
    yield "trace_no_ops", changed(TRACE, "ops", ...)
    yield "trace_ops_object", changed(TRACE, "ops", {})
    yield "trace_buffer_string", changed(TRACE, "buffers", 1, "x")
    yield "trace_op_null", changed(TRACE, "ops", 1, None)
    yield "trace_wrong_id", changed(TRACE, "buffers", 1, "id", 2)
    yield "trace_no_bytes", changed(TRACE, "buffers", 1, "bytes", ...)
    yield "trace_negative_bytes", changed(TRACE, "buffers", 1, "bytes", -1)
    yield "trace_absurd_bytes", changed(TRACE, "buffers", 1, "bytes", 1 << 60)
    yield "trace_fraction_bytes", changed(TRACE, "buffers", 1, "bytes", 0.5)
    yield "trace_huge_number", t.replace("64", "1" + "0" * 40)
    yield "trace_infinite_number", t.replace("64", "1e999")
    yield "trace_born_late", changed(TRACE, "buffers", 1, "born", 9)
    yield "trace_born_wrong", changed(TRACE, "buffers", 2, "born", 0)
    yield "trace_dies_early", changed(TRACE, "buffers", 1, "dies", 1)
    yield "trace_dies_out_of_range", changed(TRACE, "buffers", 1, "dies", 77)
    yield "trace_unknown_kind", changed(TRACE, "buffers", 1, "kind", "weights")
    yield "trace_unknown_phase", changed(TRACE, "ops", 0, "phase", "backward")
    yield "trace_negative_ns", changed(TRACE, "ops", 0, "ns", -5)
    yield "trace_no_ns", changed(TRACE, "ops", 0, "ns", ...)
    yield "trace_no_reads", changed(TRACE, "ops", 0, "reads", ...)
    yield "trace_read_string", changed(TRACE, "ops", 0, "reads", ["0"])
    yield "trace_read_out_of_range", changed(TRACE, "ops", 0, "reads", [3])
    yield "trace_read_negative", changed(TRACE, "ops", 0, "reads", [-1])
    yield "trace_operand_twice", changed(TRACE, "ops", 1, "reads", [1, 1])
    yield "trace_read_and_write", changed(TRACE, "ops", 1, "reads", [0, 1])
    yield "trace_cycle", changed(TRACE, "ops", 0, "reads", [2])
    yield "trace_reads_itself_unborn", changed(TRACE, "ops", 0, "rmw", [1])
    yield "trace_opaque_number", changed(TRACE, "ops", 0, "opaque", 1)
    yield "trace_site_without_sites", changed(TRACE, "ops", 0, "site", -2)
    yield "trace_zero_host_speed", changed(TRACE, "meta", "host_bytes_per_s", 0)
    yield "trace_granularity_negative", changed(TRACE, "meta", "granularity_bytes", -4096)
    yield "plan_empty", ""
    yield "plan_truncated", p[: len(p) - 9]
    yield "plan_other_format", changed(PLAN, "format", "opgraph-1")
    yield "plan_no_steps", changed(PLAN, "steps", ...)
    yield "plan_two_keys", changed(PLAN, "steps", 1, {"op": 1, "drop": 1})
    yield "plan_unknown_step", changed(PLAN, "steps", 1, {"evict": 1})
    yield "plan_negative_id", changed(PLAN, "steps", 1, {"drop": -1})
    yield "plan_id_string", changed(PLAN, "steps", 1, {"drop": "1"})
    yield "plan_keep_object", changed(PLAN, "keep", {})
    yield "plan_negative_limit", changed(PLAN, "limit_bytes", -1)
    yield "instance_empty", ""
    yield "instance_no_format", changed(CHAIN, "format", ...)
    yield "instance_other_format", changed(CHAIN, "format", "rotor-chain-v9")
    yield "instance_zero_length", changed(CHAIN, "L", 0)
    yield "instance_short_list", changed(CHAIN, "u_f", [3])
    yield "instance_negative_time", changed(CHAIN, "u_f", [3, -4])
    yield "instance_no_budget", changed(CHAIN, "budget", ...)
    yield "instance_list_object", changed(CHAIN, "w_a", {})
    yield "instance_truncated", c[: len(c) // 2]


def main():
    os.makedirs(OUT, exist_ok=True)
    for old in os.listdir(OUT):
        os.unlink(os.path.join(OUT, old))
    for name, body in files():
        with open(os.path.join(OUT, name + ".json"), "wb") as f:
            f.write(body.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main()
