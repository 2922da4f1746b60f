#!/usr/bin/env python3
"""wheel.py NAME TREE VERSION GLIBC OUT: a portable tree as a wheel, so that `pip install` puts it into a virtual environment. NAME: remat, or remat-sim,
the simulated GPU, which `pip install remat[sim]` asks for.

A wheel's .data/scripts go to the environment's bin, .data/data to its root: the same layout as everywhere, so the command
finds its library in ../lib/remat. The platform tag says the glibc that the tree was linked for, which no file asks for more than.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile


def too_new(paths, most):
    """The files among these that ask for a symbol of a newer glibc, each with the symbols."""
    out = []
    for path in paths:
        with open(path, "rb") as f:
            if f.read(4) != b"\x7fELF":
                continue
        text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        rows = [row.split()[-1] for row in text.splitlines()
                if any((int(a), int(b)) > most for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", row))]
        if rows:
            out.append("%s: %s" % (path, " ".join(rows)))
    return out


SUMMARY = {"remat": "train PyTorch models in less GPU memory than they need",
           "remat-sim": "a simulated GPU for remat: a CUDA driver, runtime and BLAS for machines without one"}


def metadata(name, version, tree):
    lines = ["Metadata-Version: 2.1", "Name: " + name, "Version: " + version, "Summary: " + SUMMARY[name], "License: Apache-2.0", "Requires-Python: >=3.8"]
    if name != "remat":
        return "\n".join(lines + ["Requires-Dist: remat==" + version]) + "\n"
    with open(os.path.join(tree, "share/doc/remat/README.md"), encoding="utf-8") as f:
        readme = f.read()
    lines += ["Provides-Extra: sim", "Requires-Dist: remat-sim==%s; extra == 'sim'" % version, "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + readme


def main():
    name, tree, version, glibc, out = sys.argv[1:]
    glibc = tuple(int(x) for x in glibc.split("."))
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(tree) for f in names)
    newer = too_new(files, glibc)
    if newer:
        sys.exit("wheel.py: newer than glibc %d.%d: %s" % (*glibc, "; ".join(newer)))
    tag = "py3-none-manylinux_%d_%d_%s" % (*glibc, os.uname().machine)
    stem = "%s-%s" % (name.replace("-", "_"), version)
    info, data = stem + ".dist-info", stem + ".data"
    entries = []
    for path in files:
        inside = os.path.relpath(path, tree)
        to = data + ("/scripts/remat" if inside == "bin/remat" else "/data/" + inside)
        with open(path, "rb") as f:
            entries.append((to, f.read(), 0o755 if os.access(path, os.X_OK) else 0o644))
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
    for path in sorted(os.path.join(d, f) for d, _, names in os.walk(package) for f in names if name == "remat" and not f.endswith(".pyc")):
        with open(path, "rb") as f:
            entries.append((os.path.relpath(path, package), f.read(), 0o644))
    entries.append((info + "/METADATA", metadata(name, version, tree).encode(), 0o644))
    entries.append((info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: remat\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode(), 0o644))
    record = info + "/RECORD"
    lines = ["%s,sha256=%s,%d" % (n, base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b"=").decode(), len(b))
             for n, b, _ in entries] + [record + ",,"]
    entries.append((record, ("\n".join(lines) + "\n").encode(), 0o644))
    name = os.path.join(out, "%s-%s.whl" % (stem, tag))
    with zipfile.ZipFile(name + ".tmp", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for to, content, mode in entries:
            one = zipfile.ZipInfo(to)  # its fixed date: one source gives one wheel
            one.compress_type = zipfile.ZIP_DEFLATED
            one.external_attr = (0o100000 | mode) << 16
            z.writestr(one, content)
    os.rename(name + ".tmp", name)
    print(name)


if __name__ == "__main__":
    main()
