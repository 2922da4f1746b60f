"""effects.py against made-up traces: a perfect one is exact, and every kind of damage is named. unittest only."""
import copy
import unittest

from suite import effects

MIB = 1 << 20


def truth():
    """Three operators: a product with its backward, an addition followed by an in-place ReLU, an optimizer step."""
    sizes = [3, 4, 5, 5, 3, 4,  8, 8, 8,  11, 11]
    persistent = {0, 1, 3, 6, 9, 10}
    case_of = ["mm"] * 6 + ["relu"] * 3 + ["sgd"] * 2
    tensors = [{"bytes": s * MIB, "persistent": i in persistent, "case": case_of[i], "shape": [s],
                "dtype": "torch.float32"} for i, s in enumerate(sizes)]

    def op(name, case, reads=(), writes=(), rmw=()):
        return {"op": f"aten.{name}.default", "case": case, "reads": list(reads), "writes": list(writes),
                "rmw": list(rmw)}
    ops = [op("mm", "mm", [0, 1], [2]), op("t", "mm", [0]), op("mm", "mm", [0, 3], [5]), op("mm", "mm", [1, 3], [4]),
           op("add", "relu", [6], [7]), op("relu_", "relu", rmw=[7]), op("threshold_backward", "relu", [7, 6], [8]),
           op("_foreach_add_", "sgd", [10], rmw=[9])]
    return {"format": "effects-1", "cases": ["mm", "relu", "sgd"], "tensors": tensors, "ops": ops}


def perfect(t, turn=0):
    """The trace that a perfect tracer would write, begun `turn` ops into the cycle."""
    ops = []
    for o in t["ops"]:
        if not o["writes"] and not o["rmw"]:
            continue
        ops.append({"name": "k", "phase": "fwd", "reads": o["reads"][:], "writes": o["writes"][:], "rmw": o["rmw"][:]})
        if o["op"].startswith("aten.mm"):  # split: a second kernel finishes the output in place
            ops.append({"name": "k2", "phase": "fwd", "reads": [], "writes": [], "rmw": o["writes"][:]})
    born = {}
    ops = ops[turn:] + ops[:turn]
    for i, o in enumerate(ops):
        o["id"] = i
        for b in o["writes"]:
            born.setdefault(b, i)
    return {"meta": {"granularity_bytes": 2 * MIB}, "ops": ops, "buffers": [
        {"id": i, "bytes": x["bytes"], "born": -1 if x["persistent"] else born[i]} for i, x in enumerate(t["tensors"])]}


class Effects(unittest.TestCase):
    def check(self, trace, t=None):
        return effects.compare(trace, t or truth())

    def test_perfect_is_exact_wherever_the_cycle_is_cut(self):
        t = truth()
        for turn in range(len(perfect(t)["ops"])):
            r = self.check(perfect(t, turn), t)
            self.assertTrue(r["all_exact"], (turn, r))
            self.assertEqual(r["cases"]["mm"]["kernels"], 6)

    def test_sizes_rounded_up_to_pages_are_recognised(self):
        trace = perfect(truth())
        for b in trace["buffers"]:
            b["bytes"] = -(-b["bytes"] // (2 * MIB)) * 2 * MIB
        trace["meta"]["granularity_bytes"] = 2 * MIB
        t = truth()
        for x in t["tensors"]:  # apart by more than a chunk, so that rounding keeps them apart
            x["bytes"] = x["bytes"] * 2 - 100
        for b, x in zip(trace["buffers"], t["tensors"]):
            b["bytes"] = -(-x["bytes"] // (2 * MIB)) * 2 * MIB
        self.assertTrue(self.check(trace, t)["all_exact"])

    def attention(self):
        """q, k, v, what comes out, its gradient, theirs: all of one size; and a trace in which the gradient's operator first copies."""
        names = ["q", "k", "v", "out", "grad", "dq", "dk", "dv", "x"]
        tensors = [{"bytes": (9 if n != "x" else 13) * MIB, "persistent": n in "q k v grad x", "case": "sdpa" if n != "x" else "sgd",
                    "shape": [9], "dtype": "torch.float32"} for n in names]

        def op(name, reads, writes, rmw=(), case="sdpa"):
            return {"op": f"aten.{name}.default", "case": case, "reads": reads, "writes": writes, "rmw": list(rmw)}
        t = {"format": "effects-1", "cases": ["sdpa", "sgd"], "tensors": tensors,
             "ops": [op("attention", [0, 1, 2], [3]), op("detach", [3], []), op("attention_backward", [0, 1, 2, 3, 4], [5, 6, 7]),
                     op("mul_", [], [], [8], "sgd")]}
        kernels = [([0, 1, 2], [3], []), ([4], [9], []), ([0, 1, 2, 3, 9], [5, 6], []), ([5], [7], []), ([], [], [8])]
        ops = [{"name": "k", "phase": "fwd", "id": i, "reads": r, "writes": w, "rmw": m} for i, (r, w, m) in enumerate(kernels)]
        born = {3: 0, 9: 1, 5: 2, 6: 2, 7: 3}
        return t, {"meta": {"granularity_bytes": 2 * MIB}, "ops": ops, "buffers": [
            {"id": i, "bytes": (tensors[i]["bytes"] if i < 9 else 9 * MIB), "born": born.get(i, -1)} for i in range(10)]}

    def test_an_operator_and_its_gradient_of_one_size_are_told_apart(self):
        t, trace = self.attention()
        r = self.check(trace, t)
        self.assertTrue(r["all_exact"], r)
        self.assertEqual(r["cases"]["sdpa"]["kernels"], 4)

    def test_a_gradient_that_begins_with_its_own_copy_of_a_weight_is_told_from_the_operator(self):
        names = {"x": 9, "w": 3, "y": 7, "grad": 7, "dx": 9, "dw": 3, "p": 13}
        lasting = ("x", "w", "grad", "p")
        n = {name: i for i, name in enumerate(names)}
        tensors = [{"bytes": names[k] * MIB, "persistent": k in lasting, "case": "conv" if k != "p" else "sgd", "shape": [1],
                    "dtype": "torch.float32"} for k in names]

        def op(name, case, reads, writes, rmw=()):
            return {"op": f"aten.{name}.default", "case": case, "reads": [n[k] for k in reads], "writes": [n[k] for k in writes],
                    "rmw": [n[k] for k in rmw]}
        t = {"format": "effects-1", "cases": ["conv", "sgd"], "tensors": tensors,
             "ops": [op("convolution", "conv", ["x", "w"], ["y"]), op("convolution_backward", "conv", ["grad", "x", "w"], ["dx", "dw"]),
                     op("mul_", "sgd", [], [], ["p"])]}
        for k in ("turned", "turned again"):  # the weight in another order, in a workspace of a size that no tensor has
            n[k] = len(n)
        kernels = [(["w"], ["turned"]), (["x", "turned"], ["y"]), (["w"], ["turned again"]), (["grad", "turned again"], ["dx"]),
                   (["grad", "x"], ["dw"])]
        ops = [{"name": "k", "phase": "fwd", "id": i, "reads": [n[k] for k in r], "writes": [n[k] for k in w], "rmw": []}
               for i, (r, w) in enumerate(kernels)]
        ops.append({"name": "k", "phase": "opt", "id": len(ops), "reads": [], "writes": [], "rmw": [n["p"]]})
        born = {n[k]: i for i, (_, w) in enumerate(kernels) for k in w}
        sizes = [*(x["bytes"] for x in tensors), 17 * MIB, 19 * MIB]
        trace = {"meta": {"granularity_bytes": 2 * MIB}, "ops": ops,
                 "buffers": [{"id": i, "bytes": b, "born": born.get(i, -1)} for i, b in enumerate(sizes)]}
        r = self.check(trace, t)
        self.assertTrue(r["all_exact"], r)

    def test_a_copy_of_its_own_is_no_operand_but_a_buffer_that_others_see_is(self):
        for others, exact in ((False, True), (True, False)):
            trace = perfect(truth())
            trace["ops"].insert(0, {"name": "copy", "phase": "fwd", "id": 0, "reads": [0], "writes": [11], "rmw": []})
            trace["ops"][1]["reads"] = [11, 1]
            trace["buffers"].append({"id": 11, "bytes": 3 * MIB, "born": 0})
            if others:
                trace["ops"][-1]["reads"] = trace["ops"][-1]["reads"] + [11]
            r = self.check(trace)
            self.assertEqual(r["all_exact"], exact, r)

    def test_a_lost_read_is_missing(self):
        trace = perfect(truth())
        trace["ops"][0]["reads"] = [0]
        r = self.check(trace)["cases"]["mm"]
        self.assertIn("went in unseen", r["missing"][0])
        self.assertFalse(r["right"])

    def test_a_lost_launch_is_missing(self):
        trace = perfect(truth())
        del trace["ops"][-1]
        self.assertIn("went out unseen", " ".join(self.check(trace)["cases"]["sgd"]["missing"]))

    def test_a_read_of_a_stranger_is_extra(self):
        trace = perfect(truth())
        trace["ops"][-1]["reads"].append(6)
        r = self.check(trace)
        self.assertTrue(any("no operand" in s for s in r["cases"]["sgd"]["extra"]), r)

    def test_a_write_to_what_went_in_is_extra(self):
        trace = perfect(truth())
        trace["ops"][0]["rmw"] = [1]
        trace["ops"][0]["reads"] = [0]
        self.assertTrue(self.check(trace)["cases"]["mm"]["extra"])

    def test_an_output_seen_as_changed_is_conservative(self):
        trace = perfect(truth())
        add = next(o for o in trace["ops"] if o["writes"] == [7])
        add["writes"], add["rmw"] = [], [7]
        r = self.check(trace)["cases"]["relu"]
        self.assertTrue(r["right"] and not r["exact"] and r["conservative"])

    def test_an_in_place_change_seen_as_overwritten_is_wrong(self):
        trace = perfect(truth())
        relu = next(o for o in trace["ops"] if o["rmw"] == [7])
        relu["rmw"], relu["writes"] = [], [7]
        self.assertFalse(self.check(trace)["cases"]["relu"]["right"])

    def test_the_wrong_tensor_of_the_right_size_is_confused(self):
        trace = perfect(truth())
        back = next(o for o in trace["ops"] if o["writes"] == [8])
        back["reads"] = [6]
        self.assertFalse(self.check(trace)["cases"]["relu"]["right"])
        trace = perfect(truth())
        trace["ops"][0]["reads"] = [1, 0]
        trace["buffers"][9]["born"] = 3
        self.assertTrue(self.check(trace)["cases"]["sgd"]["confused"])

    def test_workspaces_and_small_tensors_do_not_matter(self):
        t, trace = truth(), perfect(truth())
        trace["buffers"].append({"id": 11, "bytes": 7 * MIB, "born": 0})
        trace["ops"][0]["writes"].append(11)
        t["tensors"].append({"bytes": 288, "persistent": True, "case": "mm", "shape": [72], "dtype": "torch.float32"})
        t["ops"][0]["reads"].append(11)
        r = self.check(trace, t)
        self.assertTrue(r["all_exact"], r)
        self.assertEqual(r["cases"]["mm"]["small"], 1)

    def test_opaque_ops_are_named(self):
        trace = perfect(truth())
        trace["ops"][0]["opaque"] = True
        self.assertEqual(self.check(trace)["cases"]["mm"]["opaque"], ["k"])

    def test_broken_input_is_refused_with_its_lack(self):
        with self.assertRaisesRegex(ValueError, "trace has no 'buffers'"):
            effects.compare({"ops": []}, truth())
        bad = copy.deepcopy(truth())
        del bad["cases"]
        with self.assertRaisesRegex(ValueError, "truth has no 'cases'"):
            effects.compare(perfect(truth()), bad)


if __name__ == "__main__":
    unittest.main()
