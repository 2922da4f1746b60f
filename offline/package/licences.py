#!/usr/bin/env python3
"""licences.py DOC ARCHIVE...: writes DOC/THIRD-PARTY and DOC/licences/ for what was linked in from Debian's static archives."""
import os
import shutil
import subprocess
import sys


def owner(path):
    """The Debian package that a file is of, under whichever of its names dpkg knows it."""
    for name in (path, os.path.realpath(path), os.path.realpath(path).replace("/usr/lib/", "/lib/", 1)):
        said = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False).stdout
        if said:
            return said.split(":")[0]
    sys.exit("licences.py: no package has " + path)


def main():
    doc, archives = sys.argv[1], sys.argv[2:]
    os.makedirs(os.path.join(doc, "licences"), exist_ok=True)
    with open(os.path.join(doc, "THIRD-PARTY"), "w", encoding="utf-8") as f:
        f.write("Code from Debian's packages lies in the files of lib/remat and bin; the licence of each is in licences/:\n")
        for path in sorted(set(archives)):
            package = owner(path)
            shutil.copyfile("/usr/share/doc/%s/copyright" % package, os.path.join(doc, "licences", package))
            f.write("%s: licences/%s\n" % (os.path.basename(path), package))


if __name__ == "__main__":
    main()
