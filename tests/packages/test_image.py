#!/usr/bin/env python3
"""offline/package/Containerfile without a container runtime: its instructions one by one, as podman and docker take them, in roots that debootstrap makes
(Debian 12, the smallest set of packages, is what the base images are made of). Then what the manifests do with the image: its command, the copy that an init
container makes, a training run out of that copy. Needs root, debootstrap, a mirror of Debian's; compiles everything once: by hand, with --whole."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FILE = os.path.join(TOP, "offline", "package", "Containerfile")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASES = {"docker.io/library/debian:bookworm", "docker.io/library/debian:bookworm-slim"}
# as a container has it: a pid namespace, /proc, /dev, and nothing of this machine's
INSIDE = 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mkdir -p "$1/dev/shm"; cd "$1$2"; shift 2; exec chroot "$@"'


def instructions(text):
    """[(WORD, rest)]: comments out, lines that end in a backslash joined."""
    lines = [x for x in text.split("\n") if not x.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(x.split(None, 1)[0], x.split(None, 1)[1].strip()) for x in joined.split("\n") if x.strip()]


class Image:
    def __init__(self, root):
        self.root, self.env, self.folder, self.entry, self.command = root, {"PATH": PATH}, "/", [], []

    def run(self, argv, env=None):
        words = ["%s=%s" % x for x in {"HOME": "/root", **{k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}, **self.env, **(env or {})}.items()]
        chroot = [self.root, "env", "-i", *words, "sh", "-c", 'cd "$0" && exec "$@"', self.folder, *argv]
        return subprocess.run(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-ec", INSIDE, "_", self.root, "/", *chroot], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def path(self, where):
        return os.path.join(self.root, os.path.normpath(os.path.join("/", self.folder, where)).lstrip("/"))


def debian(tmp):
    at = os.path.join(tmp, "debian")
    made = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", at], capture_output=True, text=True)
    if made.returncode:
        print("no Debian 12 to be had: " + (made.stdout.strip().splitlines() or ["?"])[-1])
        return None
    for name in ("/etc/resolv.conf", "/etc/hosts"):  # a runtime hands these in
        if os.path.exists(name):
            shutil.copy(name, at + name)
    return at


def context(tmp):
    """The tree as git has it, with what is changed and new in it: COPY . is of a clone, without what was built there."""
    at = os.path.join(tmp, "context")
    subprocess.run(["git", "clone", "-q", "--depth", "1", "file://" + TOP, at], check=True)
    for name in subprocess.run(["git", "-C", TOP, "ls-files", "-z", "-mo", "--exclude-standard"], check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and os.path.exists(os.path.join(TOP, name)):
            os.makedirs(os.path.dirname(os.path.join(at, name)), exist_ok=True)
            shutil.copy2(os.path.join(TOP, name), os.path.join(at, name))
    return at


def build(text, base, here, tmp):
    """The last stage's image."""
    stages, now = {}, None
    for word, rest in instructions(text):
        if word == "FROM":
            name, _, called = rest.partition(" AS ")
            assert name in BASES, "FROM %s: which image is that?" % name
            now = Image(os.path.join(tmp, "stage%d" % len(stages)))
            stages[called or str(len(stages))] = now
            subprocess.run(["cp", "-a", base, now.root], check=True)
        elif word == "RUN":
            ran = now.run(["/bin/sh", "-c", rest])
            assert ran.returncode == 0, "RUN %s\n%s\n%s" % (rest, ran.stdout[-2000:], ran.stderr[-2000:])
        elif word == "COPY":
            m = re.fullmatch(r"(?:--from=(\w+) )?(\S+) (\S+)", rest)
            assert m, "COPY %s" % rest
            of = stages[m.group(1)].path(m.group(2)) if m.group(1) else os.path.join(here, m.group(2))
            to = now.path(m.group(3))
            assert os.path.isdir(of), "COPY %s: there is no such folder" % rest
            os.makedirs(to, exist_ok=True)
            subprocess.run(["cp", "-a", of + "/.", to], check=True)
        elif word == "WORKDIR":
            now.folder = rest
            os.makedirs(now.path("."), exist_ok=True)
        elif word == "ENV":
            name, _, value = rest.partition("=")
            now.env[name] = re.sub(r"\$(\w+)", lambda v: now.env.get(v.group(1), ""), value)
        elif word == "ENTRYPOINT":
            now.entry = json.loads(rest)
        elif word == "CMD":
            now.command = json.loads(rest)
        else:
            raise AssertionError("%s: no instruction that this test knows" % word)
    return now


def main():
    if sys.argv[1:] != ["--whole"]:
        print("by hand: python3 tests/packages/test_image.py --whole (downloads and unpacks two Debians, compiles everything in one)")
        return 77
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "-p", "-f", "true"], capture_output=True).returncode:
        print("needs root")
        return 77
    if not shutil.which("debootstrap"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "debootstrap"], capture_output=True, env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    if not shutil.which("debootstrap"):
        print("no debootstrap, and it cannot be installed")
        return 77
    with open(FILE, encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as tmp:
        base = debian(tmp)
        if not base:
            return 77
        image = build(text, base, context(tmp), tmp)
        said = image.run(image.entry + image.command)
        assert said.returncode == 0 and "remat run" in said.stdout, said
        # train.yaml: the init container, and the training image, which knows nothing of remat but that volume
        filled = image.run(["sh", "-c", "mkdir /remat && cp -r /opt/remat/. /remat/"])
        assert filled.returncode == 0, filled
        pod = Image(os.path.join(tmp, "pod"))
        shutil.move(base, pod.root)
        shutil.copytree(image.path("/remat"), pod.path("/remat"), symlinks=True)
        assert pod.run(["sh", "-c", "command -v remat"]).returncode, "the training image has a remat of its own"
        train = ["--", "/remat/lib/remat/workloads/mlp", "--iters", "8", "--batch", "4096", "--layers", "12", "--print-loss"]
        alone, held = (pod.run(["/remat/bin/remat", "run", *words, *train], {"REMAT_SIMGPU": "1"}) for words in (("--policy", "off"), ("--limit", "40M")))
        assert alone.returncode == held.returncode == 0 and "loss" in alone.stdout and alone.stdout == held.stdout, (alone, held)
        assert re.search(r"peak \d+ MiB of 40 MiB", held.stderr), held
        # node.yaml
        pages = image.run(["remat", "status", "--prometheus"])
        assert pages.returncode == 0 and "remat_" in pages.stdout, pages
        size = subprocess.run(["du", "-sk", image.path("/opt/remat")], check=True, capture_output=True, text=True).stdout.split()[0]
        print("image: %d instructions, /opt/remat has %.0f MiB" % (len(instructions(text)), int(size) / 1024))
    return 0


if __name__ == "__main__":
    sys.exit(main())
