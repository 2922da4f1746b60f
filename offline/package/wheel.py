#!/usr/bin/env python3
"""wheel.py TREE VERSION OUT: the portable tree as a wheel, so that `pip install` puts remat into a virtual environment.

A wheel's .data/scripts go to the environment's bin, .data/data to its root: the same layout as everywhere, so the command
finds its library in ../lib/remat. The platform tag says the newest glibc symbol that any of the files asks for.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile


def glibc_needed(paths):
    newest = (2, 17)
    for path in paths:
        with open(path, "rb") as f:
            if f.read(4) != b"\x7fELF":
                continue
        text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        for major, minor in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", text):
            newest = max(newest, (int(major), int(minor)))
    return newest


def main():
    tree, version, out = sys.argv[1:]
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(tree) for f in names)
    tag = "py3-none-manylinux_%d_%d_%s" % (*glibc_needed(files), os.uname().machine)
    info, data = "remat-%s.dist-info" % version, "remat-%s.data" % version
    readme = open(os.path.join(tree, "share/doc/remat/README.md"), encoding="utf-8").read()
    entries = []
    for path in files:
        inside = os.path.relpath(path, tree)
        to = data + ("/scripts/remat" if inside == "bin/remat" else "/data/" + inside)
        entries.append((to, open(path, "rb").read(), 0o755 if inside == "bin/remat" else 0o644))
    entries.append((info + "/METADATA", ("Metadata-Version: 2.1\nName: remat\nVersion: %s\nSummary: train PyTorch models in less GPU "
                                         "memory than they need\nLicense: Apache-2.0\nRequires-Python: >=3.8\n"
                                         "Description-Content-Type: text/markdown\n\n%s" % (version, readme)).encode(), 0o644))
    entries.append((info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: remat\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode(), 0o644))
    record = info + "/RECORD"
    lines = ["%s,sha256=%s,%d" % (n, base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b"=").decode(), len(b))
             for n, b, _ in entries] + [record + ",,"]
    entries.append((record, ("\n".join(lines) + "\n").encode(), 0o644))
    name = os.path.join(out, "remat-%s-%s.whl" % (version, tag))
    with zipfile.ZipFile(name + ".tmp", "w", zipfile.ZIP_DEFLATED) as z:
        for to, content, mode in entries:
            one = zipfile.ZipInfo(to)  # its fixed date: one source gives one wheel
            one.compress_type = zipfile.ZIP_DEFLATED
            one.external_attr = (0o100000 | mode) << 16
            z.writestr(one, content)
    os.rename(name + ".tmp", name)
    print(name)


if __name__ == "__main__":
    main()
