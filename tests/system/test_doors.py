#!/usr/bin/env python3
"""The tables of doors against the headers at hand: every call of cuda.h, its kin (cudaGL.h, cudaEGL.h, cudaVDPAU.h, cudaProfiler.h), their typedefs and nccl.h
has a row in hooks.def (hooked), or in doors.def (harmless, or makes memory stay), and is in one of them only; preload/README.md shows just these rows.

Headers are looked for where CUDA is installed, in Python packages (nvidia-cuda-runtime, nvidia-nccl-*), in build/pytorch, and in the folders that
REMAT_HEADERS names, divided by colons. test_doors.py --write: writes the tables into preload/README.md."""
import glob
import os
import re
import site
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
README = os.path.join(ROOT, "preload", "README.md")
BEGIN, END = "<!-- the rows of hooks.def and doors.def: make doors-table -->\n", "<!-- to here -->\n"
HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h", "nccl.h")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def preload(name):
    return read(os.path.join(ROOT, "preload", name))


# ---- the tables --------------------------------------------------------------------------------------------------------

def hooked():
    """[(family, where, [names])] of hooks.def, in its order; NVML's are left out: no header of CUDA's declares them."""
    out, where = [], {}
    text = preload("hooks.def").replace("\\\n", " ")
    for m in re.finditer(r"/\* -+ ([^*]*?) \((hook_[^)]*)\)", text):
        where[m.start()] = (m[1].split(":")[0].strip(), m[2])
    for m in re.finditer(r"^#define (HOOKS_[A-Z0-9]+)\((\w)\)(.*)$", text, re.M):
        names = []
        for row in re.finditer(r"\b(BOTH\(H|H|NAMES\(N)\s*[(,]\s*(\w+)\s*,(?:\s*\"\w+\"\s*,\s*\d+\s*,\s*(_pt[ds][sz])\b)?", m[3]):
            kind, name, suffix = row.groups()
            names += [name, name + suffix] if kind.startswith("BOTH") else [name, "p" + name] if kind.startswith("NAMES") else [name]
        if names and m[1] != "HOOKS_CUDA":
            out.append((where[max(p for p in where if p < m.start())], names))
    return out


def macro(name):
    m = re.search(r"^#define %s\(\w\)((?:.*\\\n)*.*)$" % name, preload("doors.def"), re.M)
    return m[1].replace("\\\n", " ")


def harmless():
    """[(why, [names])]"""
    out = []
    for table in ("DOORS_HARMLESS", "DOORS_HARMLESS_NCCL"):
        for m in re.finditer(r'G\("([^"]*)",((?:\s*"[^"]*")+)\s*\)', macro(table)):
            names = "".join(re.findall(r'"([^"]*)"', m[2])).split()
            out.append((m[1], names + (["p" + n for n in names] if table.endswith("NCCL") else [])))
    return out


def stays():
    """[(why, [names])]"""
    by = {}
    for name, why in re.findall(r'S\((\w+),\s*"([^"]*)"\)', macro("DOORS_STAYS")):
        by.setdefault(why, []).append(name)
    return list(by.items())


def known_version(what):
    return int(re.search(r"#define DOORS_%s_VERSION (\d+)" % what, preload("doors.def"))[1])


# ---- what a header declares ---------------------------------------------------------------------------------------------

def bare(text):
    return re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def declared(path):
    """The exported names of a header: what it declares, and what its macros make of that."""
    text = bare(read(path))
    if os.path.basename(path) == "nccl.h":
        return set(re.findall(r"\b(p?nccl[A-Z]\w*)\s*\(", text)) - {"ncclUniqueId"}
    names = set(re.findall(r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    for m in re.finditer(r"^\s*#\s*define\s+cu[A-Z]\w*\s+(?:__CUDA_API_(PTSZ|PTDS)\()?(cu[A-Z]\w*)", text, re.M):
        names.add(m[2])
        if m[1]:
            names.add(m[2] + "_" + m[1].lower())
    return names


def typedefs(path):
    """{name without variant: {version}} of a header of typedefs, PFN_cuMemAlloc_v3020."""
    out = {}
    for name, version in re.findall(r"\bPFN_(cu[A-Z]\w*?)_v(\d+)(?:_pt[ds][sz])?\b", bare(read(path))):
        out.setdefault(name, set()).add(int(version))
    return out


def version_of(path):
    text = read(path)
    m = re.search(r"#define\s+(?:CUDA_VERSION|NCCL_VERSION_CODE)\s+(\d+)", text)
    return int(m[1]) if m else 0


def folders():
    packages = list(site.getsitepackages()) + [site.getusersitepackages()]
    packages += glob.glob(os.path.join(harness.B, "pytorch", "lib", "python*", "site-packages"))
    packages += glob.glob("/usr/lib/python3*/dist-packages") + glob.glob("/usr/local/lib/python3*/*-packages")
    out = glob.glob("/usr/local/cuda*/include") + ["/usr/include", "/usr/local/include"]
    for p in packages:
        out += glob.glob(os.path.join(p, "nvidia", "*", "include"))
    return out + [d for d in os.environ.get("REMAT_HEADERS", "").split(":") if d]


def at_hand(pattern):
    """The files of that name, each once."""
    return sorted({os.path.realpath(f) for d in folders() for f in glob.glob(os.path.join(d, pattern))})


# ---- README -------------------------------------------------------------------------------------------------------------

def short(names):
    """Pairs as one: cuMemAllocAsync[_ptsz], [p]ncclSend."""
    have, out = set(names), []
    for n in names:
        plain = re.sub(r"_pt[ds][sz]$", "", n)
        if n != plain and plain in have or n[0] == "p" and n[1:] in have:
            continue
        pair = next((n + s for s in ("_ptsz", "_ptds") if n + s in have), None)
        out.append("[p]" + n if "p" + n in have else n + "[" + pair[len(n):] + "]" if pair else n)
    return out


def long(words):
    """short() the other way round."""
    out = []
    for w in words:
        m = re.fullmatch(r"(\[p\])?(\w+?)(?:\[(_pt[ds][sz])\])?", w)
        out += [m[2]] + (["p" + m[2]] if m[1] else []) + ([m[2] + m[3]] if m[3] else [])
    return out


def paragraph(head, names):
    return "\n".join(textwrap.wrap(head + " " + " ".join(short(names)), 150, break_long_words=False, break_on_hyphens=False)) + "\n\n"


def shown():
    cuda, nccl = known_version("CUDA"), known_version("NCCL")
    text = "Every call of `cuda.h` and its kin as of CUDA %d.%d, and of `nccl.h` as of NCCL %d.%d. `cuMemAllocAsync[_ptsz]` stands for two exported names.\n\n" % (
        cuda // 1000, cuda % 1000 // 10, nccl // 10000, nccl % 10000 // 100)
    text += "### Hooked\n\n"
    for (what, where), names in hooked():
        text += paragraph("**%s** (`%s`):" % (what, where.split(",")[0]), names)
    text += "### Makes memory stay\n\n"
    for why, names in stays():
        text += paragraph("**%s**:" % why, names)
    text += "### Harmless, because\n\n"
    for why, names in harmless():
        text += paragraph("**%s**:" % why, names)
    return text.rstrip("\n") + "\n"


def write():
    text = read(README)
    head, rest = text.split(BEGIN)
    with open(README, "w", encoding="utf-8") as f:
        f.write(head + BEGIN + shown() + END + rest.split(END)[1])


# ---- checks -------------------------------------------------------------------------------------------------------------

def check_tables(c, tables):
    seen = {}
    for table, names in tables.items():
        for n in names:
            c.ok(n not in seen, "%s is in two tables" % n, "%s, %s" % (seen.get(n), table))
            seen[n] = table
    c.ok(len(tables["hooked"]) > 300 and len(tables["harmless"]) > 400 and len(tables["stays"]) > 5, "the tables are read", str({k: len(v) for k, v in tables.items()}))
    rows = subprocess.run([os.path.join(harness.B, "conformance", "walk"), "rows"], capture_output=True, text=True, check=True).stdout.split("\n")
    built = {r.split()[0] for r in rows if r}
    ours = {n for n in tables["hooked"] if n.startswith("cu")}
    c.ok(built == ours, "the rows that are built are those that are read", str(sorted(built ^ ours))[:300])
    return seen, {tuple(r.split()[1:3]) for r in rows if r}


def check_readme(c):
    text = read(README)
    c.ok(BEGIN in text and END in text and text.split(BEGIN)[1].split(END)[0] == shown(), "preload/README.md shows the rows: make doors-table")


def check_headers(c, seen):
    for name in HEADERS:
        for path in at_hand(name):
            names = declared(path)
            c.ok(len(names) > 2, path + ": read", str(len(names)))
            missing = sorted(n for n in names if n not in seen)
            c.ok(not missing, path + ": calls that are in no table", " ".join(missing))
            if name in ("cuda.h", "nccl.h"):
                known = known_version("CUDA" if name == "cuda.h" else "NCCL")
                c.ok(version_of(path) <= known, path + ": newer than doors.def says", "%d, %d" % (version_of(path), known))


def check_stubs(c, seen):
    """NVIDIA's library of names, for linking."""
    for path in sorted(glob.glob("/usr/local/cuda*/lib*/stubs/libcuda.so")):
        rows = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        missing = sorted(n for n in re.findall(r"\b(cu[A-Z]\w*)$", rows, re.M) if n not in seen)
        c.ok(not missing, path + ": calls that are in no table", " ".join(missing))


def check_typedefs(c, seen, rows):
    """A variant by its version: one newer than all rows of its name has none."""
    newest = {}
    for base, since in rows:
        newest[base] = max(newest.get(base, 0), int(since))
    bases = {re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", n) for n in seen}
    for path in at_hand("cuda*Typedefs.h"):
        of = typedefs(path)
        missing = sorted("%s of %d" % (n, v) for n, vs in of.items() for v in vs if n in newest and v > newest[n])
        missing += sorted(n for n in of if n not in bases)
        c.ok(of and not missing, path + ": variants that are in no table", " ".join(missing))


def main():
    if "--write" in sys.argv:
        write()
        return 0
    c = harness.Checks()
    groups = {"hooked": [n for _, names in hooked() for n in names], "harmless": [n for _, names in harmless() for n in names],
              "stays": [n for _, names in stays() for n in names]}
    seen, rows = check_tables(c, groups)
    everything = [n for names in groups.values() for n in names]
    c.ok(sorted(long(short(everything))) == sorted(everything), "names in short are the names")
    check_readme(c)
    check_headers(c, seen)
    check_stubs(c, seen)
    check_typedefs(c, seen, rows)
    for kind in ("cuda.h", "nccl.h"):
        print("%s: %s" % (kind, ", ".join(str(version_of(p)) for p in at_hand(kind)) or "none at hand"))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
