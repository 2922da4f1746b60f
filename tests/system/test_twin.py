#!/usr/bin/env python3
"""Iterations that were recorded on a GPU, made again as driver calls where these take what they take on an H200 (tests/bench/twin.py): results are native
ones, within the limit; what a plan takes is at most so much, and what it was foretold to; without a limit remat is not noticed; and a trace is of the
whole iteration, whatever in it repeats itself.

  test_twin.py [MODEL...]     gpt2, resnet50, bert, vit
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "bench")]
import harness  # noqa: E402
import twin  # noqa: E402

# x native at 60 and at 75 % of the native peak, as measured, and some points more: how far a planner gets in its seconds differs (GPT-2: 1.11 to 1.13)
MOST = {"gpt2": (1.17, 1.10), "resnet50": (1.10, 1.05), "bert": (1.17, 1.10), "vit": (1.12, 1.08)}
# Points that the run may take beside what was foretold; BERT's host is as busy as the device, and what comes beside it costs less than foretold.
POINTS = {"gpt2": 5, "resnet50": 3, "bert": 8, "vit": 3}
NO_LIMIT = 1.02
ITERATIONS = 40


def main():
    if not os.path.exists(os.path.join(harness.B, "programs", "twin")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    twins = {}
    models = sys.argv[1:] or sorted(MOST)
    grid = [(m, p) for m in models for p in (60, 75, 100)]
    for model, percent in grid if sys.argv[1:] else harness.drawn(grid, test=1):
        t = twins[model] = twins.get(model) or twin.Twin(model)
        u = t.under(percent, ITERATIONS if percent < 100 else 2 * twin.LAST, "plan")
        what, most = "%s at %d %%" % (model, percent), dict(zip((60, 75), MOST[model])).get(percent, NO_LIMIT)
        print("%s: %.3f x, foretold %s" % (what, u["ratio"], "%.3f x" % u["told"] if u["told"] else "nothing"))
        c.ok(u["same"], what + ": as natively")
        c.ok(u["stats"]["iterations"] <= u["iterations"], what + ": iterations, whatever in them repeats itself", "%d of %d" % (u["stats"]["iterations"], u["iterations"]))
        c.ok(u["ratio"] <= most, what + ": what it takes", "%.3f x, at most %.2f" % (u["ratio"], most))
        if percent < 100:
            c.ok(u["peak"] <= u["limit"], what + ": within the limit", "%d of %d" % (u["peak"], u["limit"]))
            c.ok(u["told"] and abs(u["told"] - u["ratio"]) * 100 <= POINTS[model], what + ": as foretold", "%.3f x, %s foretold" % (u["ratio"], u["told"]))
        else:
            ops = len(t.trace()["ops"])
            c.ok(ops == len(twin.trace(model)["ops"]), model + ": a trace of the whole iteration", "%d ops" % ops)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
