"""Section 1: facts about the driver, one small program each (facts/*.c says what each asks)."""
import json
import os

from . import base

# name, arguments, environment besides, seconds it may take; in order of importance
PROGRAMS = [
    ("getproc", 10), ("alias", 15), ("param_info", 10), ("vmm_cost", 20), ("vmm_block", 25), ("launch_cost", 10),
    ("event_cost", 10), ("memset_rate", 20), ("reserve_max", 10),
]


def last_object(text):
    """The last line that is a JSON object, or None."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def spy_line(path):
    """The spy's object for the process that launched most; None when it wrote nothing."""
    best = None
    try:
        with open(path) as f:
            for line in f:
                try:
                    doc = json.loads(line)
                except ValueError:
                    continue
                if best is None or doc["launches"] > best["launches"]:
                    best = doc
    except OSError:
        return None
    return best


def run(suite, budget):
    facts = os.path.join(suite.dist, "facts")
    section = suite.result["facts"] = {"rows": {}}
    rows = section["rows"]
    rows.update(suite.before.get("facts", {}).get("rows", {}))

    def add(name, r, extra=None):
        row = last_object(r.out) or {"ok": False, "error": r.tail(300)}
        row.update(extra or {}, status=r.status(), wall_s=round(r.wall_s, 2))
        rows[name] = row
        suite.save()

    def wanted(name, seconds):
        if rows.get(name, {}).get("ok"):
            return False
        if budget.left() < min(seconds, 5):
            rows[name] = {"ok": False, "status": "skipped: time"}
            return False
        return True

    for name, seconds in PROGRAMS:
        if wanted(name, seconds):
            add(name, suite.run("fact-" + name, [os.path.join(facts, name)], min(seconds * (8 if suite.simulated else 1), budget.left())))
    # the same launch costs below a preloaded remat that has no limit to hold
    if wanted("launch_cost_remat", 15):
        r, stats = suite.remat_run("fact-launch_cost_remat", [os.path.join(facts, "launch_cost")],
                                   min(15, budget.left()))
        add("launch_cost_remat", r, {"stats": stats})
        base.note_messages(suite.result, "launch_cost_remat", r.messages())
    # every spied program writes what the spy saw beside its own answer
    spied = [("spy_check", [os.path.join(facts, "spy_check")], 15)]
    if suite.simulated:
        if suite.args.python:
            spied.append(("torch_params", [suite.python, os.path.join(suite.here, "facts", "torch_params.py")], 120))
    else:
        spied += [("cudart_params", [os.path.join(facts, "cudart_params")], 15),
                  ("cublas_params", [os.path.join(facts, "cublas_params")] + [p for p in [suite.cublas()] if p], 30),
                  ("torch_params", [suite.python, os.path.join(suite.here, "facts", "torch_params.py")], 40)]
    for name, argv, seconds in spied:
        if not wanted(name, seconds):
            continue
        if not os.path.exists(argv[0]):
            rows[name] = {"ok": False, "status": "not built"}
            continue
        out = os.path.join(suite.work, name + ".spy")
        r = suite.run("fact-" + name, argv, min(seconds, budget.left()),
                      env={"LD_PRELOAD": os.path.join(facts, "libspy.so"), "SPY_OUT": out})
        add(name, r, {"spy": spy_line(out)})


def shown(spy):
    """Of a spy's marks: how many operands showed as words, in tensor maps, not at all."""
    word = maps = hidden = 0
    for mark in (spy or {}).get("marks", []):
        for w in mark["watched"].values():
            word += w["word"] > 0
            maps += w["word"] == 0 and w["tensor_map"] > 0
            hidden += w["word"] == 0 and w["tensor_map"] == 0
    return word, maps, hidden


def table(section):
    lines = ["driver facts"]
    for name, row in section["rows"].items():
        spy, cells = row.get("spy"), []
        if "answer" in row:
            cells.append("yes" if row["answer"] else "NO")
        elif not row.get("ok"):
            cells.append(row.get("error") or row.get("status", "?"))
        keys = {"getproc": ["equal", "other", "missing"],
                "alias": ["mismatches_one_stream", "mismatches_two_streams", "stale_after_remap"],
                "vmm_cost": ["create_us", "map_us", "set_access_each_us", "set_access_whole_us_per_chunk",
                             "unmap_each_us"],
                "vmm_block": ["calls_that_wait", "kernels_slowdown"],
                "launch_cost": ["launch_ns", "alloc_async_ns", "free_async_ns"],
                "launch_cost_remat": ["launch_ns", "alloc_async_ns", "free_async_ns"],
                "event_cost": ["record_us", "wait_us", "hop_us"],
                "memset_rate": ["memset_bytes_per_s", "copy_out_bytes_per_s", "copy_in_bytes_per_s"],
                "reserve_max": ["max_reservation_bytes"],
                "cudart_params": ["kernel_info_right", "function_info_right", "kernel_is_function"]}.get(name, [])
        cells += [f"{k} {row[k]:.4g}" for k in keys if isinstance(row.get(k), (int, float))]
        if spy and name != "spy_check":
            cells.append("operands as words %d, in tensor maps %d, hidden %d" % shown(spy))
            refused = sum(spy[k]["layout_refused"] for k in ("unannounced", "function", "kernel"))
            cells.append(f"layout refused {refused} of {spy['launches']} launches")
        lines.append(f"  {name:18} {', '.join(cells)}")
    return "\n".join(lines)
