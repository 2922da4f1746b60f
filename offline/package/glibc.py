#!/usr/bin/env python3
"""glibc.py VERSION FOLDER: libraries to link against, as glibc VERSION had them, made from this machine's.

Today's glibc still has every symbol version that an old one had, so that old programs run. For each name the newest version up to VERSION
goes into FOLDER/libc.so and libm.so, which hold names and no code. What is linked against them asks for no newer version, and so
runs on VERSION: `pthread_create@GLIBC_2.2.5`, not `pthread_create@GLIBC_2.34`. A name that came later is missing, and the link says so: portable.c
has those. libpthread.so and libdl.so are empty: at VERSION they hold what libc has today, and so have to be asked for by name.
"""
import os
import re
import subprocess
import sys

# name of the file to link against: (SONAME, what this machine's names come from)
LIBRARIES = {"libc.so": "libc.so.6", "libm.so": "libm.so.6", "libpthread.so": None, "libdl.so": None, "libld.so": "LOADER"}
EMPTY = {"libpthread.so": "libpthread.so.0", "libdl.so": "libdl.so.2"}


def number(text):
    return tuple(int(x) for x in text.split("."))


def where(cc, name):
    path = subprocess.run([cc, "-print-file-name=" + name], capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):
        sys.exit("glibc.py: %s finds no %s" % (cc, name))
    return path


def loader_name(cc):
    text = subprocess.run(["readelf", "-d", where(cc, "libc.so.6")], capture_output=True, text=True, check=True).stdout
    return re.search(r"NEEDED.*\[(ld-linux[^\]]*)\]", text)[1]


def symbols(path, most):
    """{name: (version, is it data, bytes, address)}"""
    out = {}
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
    for row in text.splitlines():
        m = re.match(r"\s*\d+: (\S+)\s+(\d+)\s+(FUNC|IFUNC|OBJECT)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+ (\w+)@@?GLIBC_([\d.]+)$", row)
        if m and number(m[5]) <= most and (m[4] not in out or number(m[5]) > number(out[m[4]][0])):
            out[m[4]] = (m[5], m[3] == "OBJECT", int(m[2]), m[1])
    return out


def make(cc, folder, name, soname, found):
    code, nodes, places = [], {}, {}
    for s, (version, data, size, address) in sorted(found.items()):
        nodes.setdefault(version, []).append(s)
        places.setdefault((data, address), []).append((s, size))
    # names of one place stay names of one place: a program that has a variable copied into itself (environ) takes its other names (__environ) along
    for (data, _), names in sorted(places.items()):
        code.append("\t.%s\n\t.balign 32" % ("bss" if data else "text"))
        code += ["\t.globl %s\n\t.type %s, %%%s\n\t.size %s, %d\n%s:" % (s, s, "object" if data else "function", s, size, s) for s, size in names]
        code.append("\t.skip %d" % max([1] + [size for _, size in names if data]))
    code.append('\t.section .note.GNU-stack,"",%progbits')
    stem = os.path.join(folder, name)
    with open(stem + ".s", "w", encoding="ascii") as f:
        f.write("\n".join(code) + "\n")
    before = ""
    with open(stem + ".map", "w", encoding="ascii") as f:
        for v in sorted(nodes, key=number):
            f.write("GLIBC_%s { global: %s; }%s;\n" % (v, "; ".join(nodes[v]), before))
            before = " GLIBC_" + v
    script = ["-Wl,--version-script=" + stem + ".map"] if nodes else []
    subprocess.run([cc, "-nostdlib", "-shared", "-Wl,-soname," + soname] + script + ["-o", stem, stem + ".s"], check=True)


def main():
    version, folder = sys.argv[1:]
    cc = os.environ.get("CC", "gcc")
    os.makedirs(folder, exist_ok=True)
    for name, source in LIBRARIES.items():
        soname = EMPTY.get(name) or (loader_name(cc) if source == "LOADER" else source)
        found = symbols(where(cc, soname), number(version)) if source else {}
        if source and not found:
            sys.exit("glibc.py: %s tells no names of glibc %s" % (soname, version))
        make(cc, folder, name, soname, found)


if __name__ == "__main__":
    main()
