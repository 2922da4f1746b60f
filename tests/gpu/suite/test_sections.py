"""The sections' own logic, against a make-believe remat and make-believe training scripts: no device, no PyTorch."""
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

import run as entry
from suite import base

GIB, MIB = 1 << 30, 1 << 20

# Stands for the Python that has PyTorch: reports a training run whose peak is affine in the batch. Under a limit it
# trains when the floor fits. FAKE_DAMAGE names a variant to spoil.
TRAIN = r'''#!%s
import json, os, sys
a = sys.argv[1:]
get = lambda k: a[len(a) - 1 - a[::-1].index(k) + 1]
batch, steps, limit = int(get("--batch")), int(get("--steps")), int(os.environ.get("FAKE_LIMIT", "0"))
need = (1 << 30) + batch * (100 << 20) // (2 if "--checkpoint" in a else 1)
if limit and limit < (1 << 30) + batch * (40 << 20):
    sys.exit("torch.OutOfMemoryError: CUDA out of memory")
peak = min(need, limit) if limit else need
losses = [(2.0 - 0.1 * i).hex() for i in range(steps)]
damage = os.environ.get("FAKE_DAMAGE", "")
under = "FAKE_STATS" in os.environ
if under and damage == "loss":
    losses[3] = (1.0).hex()
ms = [30.0] * 4 + [11.0 if under else 10.0] * (steps - 4)
if damage == "hang" and under:
    import time; time.sleep(60)
json.dump({"model": "fake", "batch": batch, "losses": losses, "iter_ms": ms, "wall_ms": ms, "max_allocated_bytes": peak,
           "max_reserved_bytes": peak, "params_sha256": "00", "parameters": 7}, open(get("--json"), "w"))
if under:
    over = (1 << 20) if damage == "over" else 0
    json.dump({"peak_physical_bytes": peak + over, "native_peak_bytes": need, "replays": 5},
              open(os.environ["FAKE_STATS"], "w"))
    print("remat[%%d]: 12 ops are opaque" %% os.getpid(), file=sys.stderr)
'''
REMAT = r'''#!/bin/bash
shift
while [ "$1" != -- ]; do
    case $1 in
    --stats) export FAKE_STATS=$2 ;;
    --limit) export FAKE_LIMIT=$2 ;;
    --trace-out)
        op='{"name":"nccl","opaque":true,"why_opaque":"collective","ns":50}'
        echo '{"meta":{"peak_bytes":1},"buffers":[],"ops":['"$op"']}' >"$2" ;;
    esac
    shift 2
done
shift
exec "$@"
'''


class Sections(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        for name, text in (("remat", REMAT), ("python", TRAIN % sys.executable)):
            path = os.path.join(self.dir.name, name)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, stat.S_IRWXU)

    def go(self, *options, **env):
        """Runs the suite with the make-believe parts; returns the result."""
        out = os.path.join(self.dir.name, "out.json")
        argv = ["--dist", self.dir.name, "--out", out, "--python", os.path.join(self.dir.name, "python"), *options]
        with mock.patch.dict(os.environ, env), mock.patch("sys.stdout"), mock.patch("sys.stderr"), \
                mock.patch.object(base, "Nvml", base._NoNvml):
            self.status = entry.main(argv)
        with open(out) as f:
            return json.load(f)

    def rows(self, result):
        return {r["variant"]: r for r in result["training"]["rows"] if r.get("script", r["model"]) == "gpt2" and
                r["amp"] == "bf16"}

    def test_a_good_run_is_equal_and_within(self):
        result = self.go("--sections", "training", "--models", "gpt2")
        rows = self.rows(result)
        self.assertEqual(self.status, 0)
        self.assertEqual(set(rows), {"native", "remat", "remat75", "remat60", "remat50", "remat35", "checkpoint", "remat@ck",
                                     "compile", "swap50", "warm50"})
        native = rows["native"]["max_allocated_bytes"]
        self.assertEqual(rows["remat50"]["limit_bytes"], native // 2)
        self.assertEqual(rows["remat@ck"]["limit_bytes"], rows["checkpoint"]["max_allocated_bytes"])
        self.assertEqual(rows["remat35"]["status"], "exit 1")
        self.assertIn("out of memory", rows["remat35"]["error"])
        for v in ("remat", "remat75", "remat@ck"):
            self.assertTrue(rows[v]["losses_equal"] and rows[v]["params_equal"], v)
        self.assertTrue(rows["remat75"]["within_limit_driver"])
        self.assertAlmostEqual(rows["remat"]["slowdown"], 1.1)
        self.assertAlmostEqual(rows["remat"]["learning_s"], 4 * 19e-3)
        self.assertEqual(rows["remat"]["trace"]["opaque"], 1)
        self.assertEqual(result["wrong"]["opaque"]["nccl"]["ns"], 50 * 2)  # gpt2 in both precisions
        self.assertEqual(result["wrong"]["opaque"]["nccl"]["why"], ["collective"])
        (message,) = result["wrong"]["messages"].values()
        self.assertEqual(message["first"], "12 ops are opaque")

    def test_a_different_loss_is_found(self):
        rows = self.rows(self.go("--sections", "training", "--models", "gpt2", "--variants", "native,remat",
                                 FAKE_DAMAGE="loss"))
        self.assertFalse(rows["remat"]["losses_equal"])
        self.assertEqual(rows["remat"]["first_difference"], 3)

    def test_a_peak_over_the_limit_is_found(self):
        rows = self.rows(self.go("--sections", "training", "--models", "gpt2", "--variants", "native,remat75",
                                 FAKE_DAMAGE="over"))
        self.assertFalse(rows["remat75"]["within_limit_driver"])

    def test_a_hanging_run_is_ended_and_the_rest_skipped(self):
        self.go("--sections", "training", "--models", "gpt2", "--variants", "native")
        earlier = os.path.join(self.dir.name, "earlier.json")
        with open(os.path.join(self.dir.name, "out.json")) as f:
            before = json.load(f)
        for row in before["training"]["rows"]:
            row["wall_s"] = min(row.get("wall_s", 0), 0.2)  # whatever else this machine does: what comes next has time
        with open(earlier, "w") as f:
            json.dump(before, f)
        result = self.go("--sections", "training", "--models", "gpt2", "--variants", "native,remat,remat50", "--budget",
                         "4", "--resume", earlier, FAKE_DAMAGE="hang")
        rows = self.rows(result)
        self.assertEqual(rows["remat"]["status"], "timed out")
        self.assertEqual(rows["remat50"]["status"], "skipped: time")
        self.assertLess(result["seconds"], 12)

    def test_resume_takes_what_was_done_and_does_the_rest(self):
        self.go("--sections", "training", "--models", "gpt2", "--variants", "native")
        earlier = os.path.join(self.dir.name, "earlier.json")
        os.rename(os.path.join(self.dir.name, "out.json"), earlier)
        with open(earlier) as f:
            doc = json.load(f)
        doc["training"]["rows"][0]["wall_s"] = 0.125  # a mark that a repeated run would lose
        with open(earlier, "w") as f:
            json.dump(doc, f)
        rows = self.rows(self.go("--sections", "training", "--models", "gpt2", "--variants", "native,remat", "--resume",
                                 earlier))
        self.assertEqual(rows["native"]["wall_s"], 0.125)
        self.assertTrue(rows["remat"]["losses_equal"])

    def test_losses_that_are_not_numbers_are_never_equal(self):
        from suite import training
        row = {"losses": ["nan"] * 3}
        training.judge(row, {"losses": ["nan"] * 3})
        self.assertFalse(row["losses_equal"])

    def test_nvml_is_held_against_the_limit_less_the_context(self):
        from suite import training
        native = {"losses": ["0x1p+0"], "overhead_bytes": 500 * MIB}
        row = {"losses": ["0x1p+0"], "limit_bytes": 4 * GIB, "device_peak_bytes": 4 * GIB + 520 * MIB, "stats": {}}
        training.judge(row, native)
        self.assertEqual(row["nvml_over_limit_bytes"], 20 * MIB)
        self.assertTrue(row["within_limit_nvml"])
        row["device_peak_bytes"] += 100 * MIB
        training.judge(row, native)
        self.assertFalse(row["within_limit_nvml"])

    def test_largest_batch(self):
        rows = {r["how"]: r for r in self.go("--sections", "batch", "--models", "gpt2")["batch"]["rows"]}
        # native: 1 GiB + 8 x 100 MiB; checkpointing takes 50 MiB a sample: 16; remat's floor is 40 MiB a sample: 20
        self.assertEqual(rows["native"]["batch"], 8)
        self.assertEqual(rows["checkpoint"]["batch"], 16)
        self.assertEqual(rows["remat"]["batch"], 20)

    def test_missing_parts_are_rows_not_exceptions(self):
        os.unlink(os.path.join(self.dir.name, "remat"))
        result = self.go("--sections", "facts,coverage,training", "--models", "gpt2", "--variants", "native,remat",
                         "--budget", "60")
        self.assertEqual(self.status, 0)
        self.assertEqual(self.rows(result)["remat"]["status"], "could not start")
        self.assertFalse(result["facts"]["rows"]["alias"]["ok"])
        self.assertNotEqual(result["coverage"]["status"], "ok")


if __name__ == "__main__":
    unittest.main()
