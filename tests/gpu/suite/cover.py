"""Section 3: are a trace's reads and writes exactly the tensors that went in and came out? (coverage.py, effects.py)"""
import os

from . import base, effects


def run(suite, budget):
    section = suite.result["coverage"] = {"status": "no truth"}
    before = suite.before.get("coverage", {})
    if before.get("status") == "ok":
        suite.result["coverage"] = before
        return
    program = os.path.join(suite.here, "coverage.py")
    truth, trace = os.path.join(suite.work, "truth.json"), os.path.join(suite.work, "coverage.json")
    scale = ["--scale", str(suite.args.scale)] if suite.args.scale != 1 else []
    r = suite.run("coverage-truth", [suite.python, program, "--truth", truth] + scale, min(300 if suite.simulated else 30, budget.left()))
    section["truth"] = {"status": r.status(), "wall_s": round(r.wall_s, 1)}
    if r.status() != "ok":
        section.update(status="no truth", error=r.tail())
        return
    suite.save()
    # twelve iterations: boundary, probes, and one recorded with everything learnt
    r = suite.run("coverage-trace", [suite.remat, "trace", "-o", trace, "--", suite.python, program, "--steps", "12"] +
                  scale, min(400 if suite.simulated else 60, budget.left()), env={"REMAT_CACHE": os.path.join(suite.work, "coverage-cache")})
    section["trace"] = {"status": r.status(), "wall_s": round(r.wall_s, 1)}
    base.note_messages(suite.result, "coverage", r.messages())
    suite.keep_trace(trace, "coverage")
    try:
        result = effects.compare_files(trace, truth)
    except (OSError, ValueError) as e:
        section.update(status="no trace", error=f"{e}; {r.tail(300)}")
        return
    section.update(result, status="ok")


def table(section):
    if "cases" not in section:
        return f"coverage: {section['status']}: {section.get('error', '')[-200:]}"
    return effects.table(section)
