#!/usr/bin/env python3
"""No circle of calls between rooms (folders): the files of one may call each other, those of two may not, whatever lies between. Read from
the symbols of what was built."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# The C library's, which the doors have one of their own for.
INTERPOSED = {"dlsym"}
SAID = 12

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def objects(folder, under=""):
    """{file without its suffix: object}, of sources that are there."""
    found = {}
    for where, _, files in os.walk(os.path.join(folder, under)):
        for f in files:
            name = os.path.join(os.path.relpath(where, folder), f[:-2])
            if f.endswith(".o") and os.path.exists(os.path.join(ROOT, name + ".c")):
                found[os.path.normpath(name)] = os.path.join(where, f)
    return found


def arrows(found):
    """{file: {file that it calls: a name}}"""
    home, wants = {}, {}
    for name, path in found.items():
        wants[name] = []
        for row in subprocess.run(["nm", "-P", "-g", path], capture_output=True, text=True, check=True).stdout.splitlines():
            symbol, kind = row.split()[:2]
            if kind == "U":
                wants[name].append(symbol)
            elif symbol not in INTERPOSED:
                home[symbol] = name
    return {name: {home[s]: s for s in symbols if home.get(s, name) != name} for name, symbols in wants.items()}


def circles(calls):
    """The sets of files that call each other in a loop (Tarjan, without recursion)."""
    order, low, stack, held, out = {}, {}, [], set(), []
    for root in calls:
        if root in order:
            continue
        todo = [(root, iter(calls[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        held.add(root)
        while todo:
            v, after = todo[-1]
            w = next(after, None)
            if w is None:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[v])
                if low[v] == order[v]:
                    circle = stack[stack.index(v):]
                    del stack[stack.index(v):]
                    held -= set(circle)
                    if len(circle) > 1:
                        out.append(sorted(circle))
            elif w not in order:
                order[w] = low[w] = len(order)
                stack.append(w)
                held.add(w)
                todo.append((w, iter(calls[w])))
            elif w in held:
                low[v] = min(low[v], order[w])
    return out


def check(c, what, found):
    calls = arrows(found)
    n = sum(len(to) for to in calls.values())
    c.ok(len(calls) > 50 and n > 200, what + ": read", "%d files, %d arrows" % (len(calls), n))
    between = [x for x in circles(calls) if len({os.path.dirname(f) for f in x}) > 1]
    pairs = {}
    for a, b in ((a, b) for x in between for a in x for b in calls[a] if b in x and os.path.dirname(a) != os.path.dirname(b)):
        pairs.setdefault((os.path.dirname(a), os.path.dirname(b)), []).append("%s calls %s (%s)" % (a, b, calls[a][b]))
    few_first = [why for ways in sorted(pairs.values(), key=len) for why in ways]  # those that go the wrong way are seldom many
    c.ok(not between, what + ": no circle between rooms", "; ".join(few_first[:SAID]))


def main():
    pic, obj = os.path.join(harness.B, "pic"), os.path.join(harness.B, "obj")
    if not os.path.isdir(pic) or not os.path.isdir(obj):
        print("no objects to look at")
        return 77
    c = harness.Checks()
    check(c, "the library", objects(pic))
    check(c, "the tool", objects(obj, "offline"))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
