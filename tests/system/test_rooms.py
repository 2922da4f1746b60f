#!/usr/bin/env python3
"""How files call each other, read from the symbols of what was built and from the headers:

- no circle of calls between files, nor between rooms (folders), whatever lies between;
- a function of x.c is declared in x.h of the same folder, and nowhere else;
- names bear a word of their file's name, all but so many (STRAYS), which may only become fewer.

Contracts have headers of their own: what other libraries name (the doors: all that libremat.so exports), and the engine's, which has a second
implementation (tests/conformance/engine_pass.c). What is referred to only weakly
(commands, solvers) needs no declaration in a header: its table makes one of each row."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# Exported names without a word of their file's name.
STRAYS = {"the library": 5, "the tool": 0}

# The C library's, which the doors have one of their own for.
INTERPOSED = {"dlsym", "dlopen", "_exit", "_Exit"}
FOLDERS = ("offline", "tracer", "policy", "preload")
SAID = 12

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORD = re.compile(r"[A-Za-z_]\w*|[^\w\s]")


def objects(folder, under=""):
    """{file without its suffix: object}, of sources that are there."""
    found = {}
    for where, _, files in os.walk(os.path.join(folder, under)):
        for f in files:
            name = os.path.join(os.path.relpath(where, folder), f[:-2])
            if f.endswith(".o") and os.path.exists(os.path.join(ROOT, name + ".c")):
                found[os.path.normpath(name)] = os.path.join(where, f)
    return found


def symbols(found):
    """{file: {"has": what it exports, "uses": what it calls, "may use": what it refers to weakly}}"""
    out, of = {name: {"has": set(), "uses": set(), "may use": set()} for name in found}, {path: name for name, path in found.items()}
    for row in subprocess.run(["nm", "-P", "-A", "-g", *of], capture_output=True, text=True, check=True).stdout.splitlines():
        path, _, rest = row.partition(": ")
        symbol, kind = rest.split()[:2]
        out[of[path]]["uses" if kind == "U" else "may use" if kind in "wv" else "has"].add(symbol)
    return out


def homes(files):
    """{name: the file that has it}"""
    return {s: name for name, of in files.items() for s in of["has"] - INTERPOSED}


def arrows(files):
    """{file: {file that it calls: a name}}"""
    home = homes(files)
    return {name: {home[s]: s for s in sorted(of["uses"]) if home.get(s, name) != name} for name, of in files.items()}


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


def bare(text):
    """Without comments, texts and lines of the preprocessor."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', lambda m: " " if m[0][0] == "/" else "0", text, flags=re.S)
    return re.sub(r"^[ \t]*#.*$", "", text.replace("\\\n", " "), flags=re.M)


def declared(path):
    """The words of a source outside of braces and parentheses, and those after `extern` anywhere, initial values left out: every name that it
    declares is one of them."""
    out, braces, parens, outside, value, last = set(), 0, 0, False, False, ""
    with open(path, encoding="utf-8") as f:
        words = WORD.findall(bare(f.read()))
    for w in words:
        if w in "{}":
            braces += 1 if w == "{" else -1
        elif w in "()[]":
            parens += 1 if w in "([" else -1
        elif w == "extern":
            outside = True
        elif w == ";":
            outside = value = False
        elif w == "=" and parens == 0 and (braces == 0 or outside):
            value = True
        elif parens == 0 and (braces == 0 or outside) and not value and last not in ("struct", "union", "enum"):
            out.add(w)
        last = w
    return out


def sources(suffix):
    for folder in FOLDERS:
        for where, _, files in os.walk(os.path.join(ROOT, folder)):
            for f in files:
                if f.endswith(suffix):
                    yield os.path.normpath(os.path.relpath(os.path.join(where, f), ROOT))


def contracts():
    """What the library's users see, and the hooks' second names; what the doors see of the engine."""
    library, other = os.path.join(harness.B, "libremat.so"), os.path.join(harness.B, "conformance", "engine_pass.o")
    rows = subprocess.run(["nm", "-P", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {row.split()[0] for row in rows}
    return names | {"hook_" + n for n in names} | symbols({"": other})[""]["has"]


def check_circles(c, what, files):
    calls = arrows(files)
    n = sum(len(to) for to in calls.values())
    c.ok(len(calls) > 50 and n > 200, what + ": read", "%d files, %d arrows" % (len(calls), n))
    every = circles(calls)
    between = [x for x in every if len({os.path.dirname(f) for f in x}) > 1]
    pairs = {}
    for a, b in ((a, b) for x in between for a in x for b in calls[a] if b in x and os.path.dirname(a) != os.path.dirname(b)):
        pairs.setdefault((os.path.dirname(a), os.path.dirname(b)), []).append("%s calls %s (%s)" % (a, b, calls[a][b]))
    few_first = [why for ways in sorted(pairs.values(), key=len) for why in ways]  # those that go the wrong way are seldom many
    c.ok(not between, what + ": no circle between rooms", "; ".join(few_first[:SAID]))
    ways = ["%s calls %s (%s)" % (a, b, calls[a][b]) for x in every for a in x for b in sorted(calls[a]) if b in x]
    c.ok(not every, what + ": no circle between files", "; ".join(ways[:SAID]))


def check_headers(c, what, files, named, headers):
    """headers: {header: what it declares}"""
    home = {s: f for s, f in homes(files).items() if s not in named and s != "main"}
    where = {}
    for h, words in headers.items():
        for s in words & set(home):
            where.setdefault(s, set()).add(h)
    used = set().union(*(of["uses"] for of in files.values()))
    weak = set().union(*(of["may use"] for of in files.values()))
    wrong = []
    for s, f in sorted(home.items(), key=lambda x: (x[1], x[0])):
        right = f + ".h"
        places = where.get(s, set()) - {right}
        if places:
            wrong.append("%s: %s of %s.c" % (", ".join(sorted(places)), s, f))
        elif s not in where and (s in used or s not in weak):
            wrong.append("%s.c: %s is in no header" % (f, s))
    c.ok(not wrong, what + ": functions are declared in their own file's header", "%d; %s" % (len(wrong), "; ".join(wrong[:SAID])))
    by_hand = ["%s.c: %s of %s.c" % (f, s, home[s]) for f, of in sorted(files.items())
               for s in sorted(declared(os.path.join(ROOT, f + ".c")) & of["uses"]) if home.get(s, f) != f]
    c.ok(not by_hand, what + ": no source declares another's functions", "; ".join(by_hand[:SAID]))


def stem_words(name):
    return {w.rstrip("s") for w in name.split("_")}


def check_names(c, what, files, named):
    used = set().union(*(of["uses"] for of in files.values()))
    rows = set().union(*(of["may use"] for of in files.values())) - used  # named as their table has it
    home = {s: f for s, f in homes(files).items() if s not in named | rows and s != "main"}
    strays = sorted("%s.c: %s" % (f, s) for s, f in home.items() if not stem_words(s) & stem_words(os.path.basename(f)))
    print("%s: %d of %d exported names bear no word of their file's name" % (what, len(strays), len(home)))
    c.ok(len(strays) <= STRAYS[what], what + ": names bear their file's", "%d, %d were allowed: %s" % (len(strays), STRAYS[what], "; ".join(strays)))


def check(c, what, found, named, headers):
    files = symbols(found)
    check_circles(c, what, files)
    check_headers(c, what, files, named, headers)
    check_names(c, what, files, named)


def main():
    pic, obj, library = os.path.join(harness.B, "pic"), os.path.join(harness.B, "obj"), os.path.join(harness.B, "libremat.so")
    if not os.path.isdir(pic) or not os.path.isdir(obj) or not os.path.exists(library):
        print("no objects to look at")
        return 77
    if os.environ.get("SAN"):
        print("which functions are whose is looked at in ordinary builds: a sanitizer adds names of its own")
        return 77
    c = harness.Checks()
    headers = {h: declared(os.path.join(ROOT, h)) for h in sources(".h")}
    check(c, "the library", objects(pic), contracts(), headers)
    check(c, "the tool", objects(obj, "offline"), set(), headers)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
