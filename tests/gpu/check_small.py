"""check_small.py RESULT.json: did the suite hold on the simulated device what a real one is asked for?

Every fact, workload and operator as on a device; every training run with the losses and parameters of the native one and within its limit; under a
limit, iterations that follow a plan. Toys whose optimizer alone needs more than the limit must say so. Says what does not hold, one line each; exit
status 1 then.
"""
import json
import sys

# what lives on is three quarters of it: its limits are refused, and that is asked for
REFUSES = ("resnet50",)


def lacks(result):
    facts = result["facts"]["rows"]
    for name, row in facts.items():
        if row.get("status") != "ok" or not row.get("ok"):
            yield f"fact {name}: {row.get('status')}"
    for row in result["workloads"]["rows"]:
        name = f"workload {row['workload']} {row['variant']}"
        if row["status"] != "ok":
            yield f"{name}: {row['status']}"
        elif row["variant"] != "native" and not row["equal"]:
            yield f"{name}: other losses or another checksum"
        elif row.get("limit_bytes") and not row["within_limit"]:
            yield f"{name}: more than its limit"
        elif row["variant"].startswith("plan") and not row["stats"]["iterations_enforced"]:
            yield f"{name}: no iteration follows a plan"
    for name, case in result["coverage"].get("cases", {"coverage": {"exact": False}}).items():
        if not case["exact"]:
            yield f"operator {name}: not exact"
    followed = 0
    for row in result["training"]["rows"]:
        name = f"training {row['model']} {row['amp']} {row['variant']}"
        refused = any("out of memory" in m or "no plan" in m for m in row.get("messages", []))
        if row["status"] == "exit 1" and row["model"] in REFUSES and row.get("limit_bytes") and refused:
            continue
        if row["status"] != "ok":
            yield f"{name}: {row['status']}"
        elif row["variant"] != "native" and not (row["losses_equal"] and row["params_equal"]):
            yield f"{name}: other losses or parameters"
        elif row.get("limit_bytes") and not row["within_limit_driver"]:
            yield f"{name}: more than its limit"
        elif row.get("limit_bytes") and not row["stats"]["iterations_enforced"]:
            yield f"{name}: no iteration follows a plan"
        else:
            followed += bool(row.get("limit_bytes"))
    if not followed:
        yield "training: nothing was held to a limit"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1]) as f:
            result = json.load(f)
        found = list(lacks(result))
    except (OSError, ValueError, KeyError) as e:
        sys.exit(f"check_small.py: {sys.argv[1]}: {e!r}")
    for line in found:
        print(f"FAIL {line}")
    print(f"the suite in small: {len(found)} things do not hold" if found else "the suite in small: all holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
