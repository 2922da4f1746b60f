#!/usr/bin/env python3
"""The documentation is true: every command in it is in a block that is run, links lead somewhere, and the table of messages has each
warning of the library's in the library's words, and no other. Argument `packages` or `pytorch`: the blocks marked so instead (make wheel and
the like; what needs PyTorch, from make test-pytorch)."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
B = os.environ.get("B", os.path.join(TOP, "build"))
failed = []

# What stands in the examples for things that are not here. `python train.py` is a small workload on the simulated GPU.
SHIMS = {
    "python": 'case "$1" in train.py|docs/example/train.py) exec "$B/workloads/mlp" --iters 10 --batch 1024 --layers 12 ;; *) exec python3 "$@" ;; esac',
    # what torchrun documents of the environment of each worker
    "torchrun": 'n=1; while [ $# -gt 1 ]; do [ "$1" = --nproc-per-node ] && n=$2; shift; done\n'
                'export WORLD_SIZE=$n LOCAL_WORLD_SIZE=$n GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none\n'
                'for r in $(seq 0 $((n - 1))); do RANK=$r LOCAL_RANK=$r ROLE_RANK=$r python "$1" >"rank$r.out" & done; wait',
    "nsys": 'while [ "$1" != remat ]; do shift; done; exec "$@"',
    # what Slurm documents: TaskProlog's "export" lines are put into the environment of each task
    "srun": 'eval "$(./task-prolog | grep "^export ")"; for r in 0 1; do SLURM_PROCID=$r "$@" >"task$r.out" & done; wait',
    "make": 'exec "$REAL_MAKE" -s -C "$TOP" B="$B" "$@" >/dev/null',
    "sudo": 'exec "$@"',
    "sqlite3": 'exec python3 -c "import sqlite3, sys\n'
               'c = sqlite3.connect(sys.argv[2]).execute(sys.argv[3]); print(*[d[0] for d in c.description], sep=\'|\')\n'
               'for r in c: print(*r, sep=\'|\')" "$@"',
}


def fail(what):
    print("FAILED: %s" % what)
    failed.append(what)


def pages():
    return [os.path.join(TOP, "README.md")] + sorted(glob.glob(os.path.join(TOP, "docs", "*.md")))


def blocks(text, info):
    return [m.group(1) for m in re.finditer(r"^```%s\n(.*?)^```$" % re.escape(info), text, re.S | re.M)]


def pytorch():
    return os.path.join(B, "pytorch", "bin", "python")


def sandbox(tmp):
    shims = os.path.join(tmp, "bin")
    os.makedirs(shims)
    bodies = dict(SHIMS)
    if shutil.which("sqlite3"):
        del bodies["sqlite3"]
    if sys.argv[1:] == ["pytorch"]:
        bodies.update(python='exec "%s" "$@"' % pytorch(), make='[ "$*" = pytorch ]') # it was made before this is run
    for name, body in bodies.items():
        path = os.path.join(shims, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % body)
        os.chmod(path, 0o755)
    with open(os.path.join(shims, "remat"), "w") as f: # planners get little time, whatever the page says: what more of it brings is tried elsewhere
        f.write('#!/bin/sh\ncase "$1" in plan|sweep|advise|report) case " $* " in *" --help "*|*" -- "*) ;; *) set -- "$@" --time-limit 0.5 ;; esac ;; esac\nexec "%s" "$@"\n' % os.path.join(B, "remat"))
    os.chmod(os.path.join(shims, "remat"), 0o755)
    env = dict(os.environ, PATH=shims + ":" + os.environ["PATH"], B=B, TOP=TOP, REAL_MAKE=shutil.which("make") or "make", HOME=tmp,
               REMAT_SIMGPU="1", SIMGPU_GRANULARITY="131072", REMAT_STATUS_DIR=os.path.join(tmp, "status"), REMAT_GROUP_DIR=os.path.join(tmp, "groups"))
    env.pop("LD_PRELOAD", None)
    env["PYTHONPATH"] = os.path.join(TOP, "offline", "python") # as the wheel has it
    env.pop("MAKEFLAGS", None)
    return env


def built(work, info):
    """build/ as the docs name it; its mlp takes less time for the same steps: what it computes is tried elsewhere."""
    if info != "sh":
        return os.symlink(B, os.path.join(work, "build"))
    os.makedirs(os.path.join(work, "build", "workloads"))
    for name in os.listdir(B):
        if name != "workloads":
            os.symlink(os.path.join(B, name), os.path.join(work, "build", name))
    mlp = os.path.join(work, "build", "workloads", "mlp")
    with open(mlp, "w") as f:
        f.write('#!/bin/sh\nexec "$B/workloads/mlp" --iters 10 --batch 8192 "$@"\n')
    os.chmod(mlp, 0o755)


def run_blocks(info):
    ran = 0
    for page in pages():
        text = open(page, encoding="utf-8").read()
        found = blocks(text, info)
        if info == "sh pytorch": # README's example, with the script itself: `plan --limit 60%` of what it recorded lay below the floor once
            found = [b for b in blocks(text, "sh") if "docs/example/train.py" in b] + found
        if not found:
            continue
        with tempfile.TemporaryDirectory() as tmp:
            env = sandbox(tmp)
            if info == "sh pytorch":
                del env["SIMGPU_GRANULARITY"] # as printed: pages of 2 MiB, as every GPU has them
            work = os.path.join(tmp, "work")
            os.makedirs(work)
            open(os.path.join(work, "train.py"), "w").close()
            for f in glob.glob(os.path.join(TOP, "docs", "example", "*")):
                shutil.copy(f, work)
            built(work, info)
            for folder in ("tests", "docs"):
                os.symlink(os.path.join(TOP, folder), os.path.join(work, folder))
            for block in found: # one page is one session
                run = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", block], cwd=work, env=env, capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, timeout=1500 if info == "sh pytorch" else 280)
                ran += 1
                if run.returncode:
                    fail("%s: exit %d:\n%s%s" % (os.path.relpath(page, TOP), run.returncode, block, (run.stdout + run.stderr)[-600:]))
                elif "Traceback" in run.stderr:
                    fail("%s: %s" % (os.path.relpath(page, TOP), run.stderr[-600:]))
    return ran


def run_examples():
    """The examples of the man pages, in one session."""
    remat, ran = os.path.join(B, "remat"), 0
    names = re.findall(r"^  remat (\w+) ", subprocess.run([remat, "--help"], capture_output=True, text=True, check=True).stdout, re.M)
    with tempfile.TemporaryDirectory() as tmp:
        env = sandbox(tmp)
        open(os.path.join(tmp, "train.py"), "w").close()
        os.symlink(os.path.join(TOP, "tests"), os.path.join(tmp, "tests"))
        os.symlink(B, os.path.join(tmp, "build"))
        for name in names:
            page = subprocess.run([remat, "--generate", "man", name], capture_output=True, text=True, check=True).stdout
            found = re.findall(r"^\.nf\n\.RS\n(.*?)^\.RE$", page.partition('.SH "EXAMPLES"')[2], re.S | re.M)
            for block in found:
                block = block.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
                run = subprocess.run(["bash", "-eu", "-c", block], cwd=tmp, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=280)
                ran += 1
                if run.returncode:
                    fail("man remat-%s: exit %d:\n%s%s" % (name, run.returncode, block, (run.stdout + run.stderr)[-600:]))
            if not found:
                fail("man remat-%s has no example" % name)
    return ran


# What a block may be: run here, or by another target, or read by the function named; text is what a command printed.
INFOS = {"json", "python", "text", "sh", "sh packages", "sh pytorch", "sh dmem", "conf"}
COMMAND = re.compile(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:remat|make|python3?|pip|sudo|nsys|torchrun|srun|apt|apt-get|sqlite3|\./\S+|build/\S+) ")


def check_all_is_run():
    """No command stands where nothing runs it: in a block without a mark, or indented."""
    for page in pages():
        name, inside = os.path.relpath(page, TOP), None
        for n, line in enumerate(open(page, encoding="utf-8"), 1):
            fence = re.match(r"```(.*)$", line)
            if fence and inside is None:
                inside = fence.group(1).strip()
                if inside not in INFOS:
                    fail("%s:%d: a block of '%s': one of %s is run or read" % (name, n, inside, ", ".join(sorted(INFOS))))
            elif fence:
                inside = None
            elif inside is None and line.startswith("    ") and COMMAND.match(line):
                fail("%s:%d: a command that nothing runs: %s" % (name, n, line.strip()))


def check_conf():
    """Files of maxima in the docs, and in the man page, have no line that is no rule."""
    texts = [b for page in pages() for b in blocks(open(page, encoding="utf-8").read(), "conf")]
    with open(os.path.join(TOP, "docs", "remat.conf.5"), encoding="utf-8") as f:
        texts += re.findall(r"^\.RS\n(#.*?)^\.RE$", f.read(), re.S | re.M)
    if len(texts) < 2:
        fail("only %d examples of remat.conf" % len(texts))
    for text in texts:
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "remat.conf")
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o644)
            run = subprocess.run([os.path.join(B, "remat"), "doctor", "--json"], env=dict(sandbox(tmp), REMAT_CONF_ALSO=path), capture_output=True,
                                 text=True)
            bad = [x["finding"] for x in json.loads(run.stdout)["findings"] if x["about"] == "maxima" and path in x["finding"] and x["verdict"] == "bad"]
            bad = [x for x in bad if os.getuid() == 0 or "others than root" not in x]
            if bad or path not in run.stdout:
                fail("remat.conf: %s in:\n%s" % (bad, text))


def check_dmem():
    """The kernel's limit, with files that stand for the kernel's: the program stays within what is left."""
    ran = 0
    for page in pages():
        for text in blocks(open(page, encoding="utf-8").read(), "sh dmem"):
            with tempfile.TemporaryDirectory() as tmp:
                env, top = sandbox(tmp), os.path.join(tmp, "cgroup")
                os.mkdir(top)
                open(os.path.join(tmp, "train.py"), "w").close()
                with open(os.path.join(top, "dmem.capacity"), "w") as f:
                    f.write("nvidia/0000:01:00.0/vidmem 8589934592\n")
                stats = os.path.join(tmp, "stats.json")
                text = text.replace("/sys/fs/cgroup", top).replace("0000:3b:00.0", "0000:01:00.0").replace("remat run --", "remat run --stats %s --" % stats)
                text = text.replace("12884901888", str(300 << 20)).replace("8589934592", str(100 << 20)) # the example's device is a larger one
                run = subprocess.run(["bash", "-eu", "-c", text], cwd=tmp, env=dict(env, REMAT_CGROUP=os.path.join(top, "job")), capture_output=True,
                                     text=True, timeout=280)
                got = json.load(open(stats)) if os.path.exists(stats) else {}
                if run.returncode or got.get("limit_bytes") != 100 << 20:
                    fail("the kernel's limit: exit %d, %s: %s" % (run.returncode, got, run.stderr[-600:]))
                ran += 1
    if not ran:
        fail("no example of the kernel's limit")


def check_questions():
    """The five questions of operators are answered by name, and each has the test of that name."""
    with open(os.path.join(TOP, "docs", "sharing.md"), encoding="utf-8") as f:
        asked = [re.sub(r"\W+", "_", q.lower()).strip("_") for q in re.findall(r"^\| \*\*(.*?\?)\*\* \|", f.read(), re.M)]
    with open(os.path.join(HERE, "test_isolation.py"), encoding="utf-8") as f:
        answered = re.search(r"for question in \((.*?)\):", f.read()).group(1).split(", ")
    if len(asked) != 5 or asked != answered:
        fail("docs/sharing.md asks %s, tests/system/test_isolation.py answers %s" % (asked, answered))


def check_links():
    for page in pages() + [os.path.join(TOP, "CHANGELOG.md"), os.path.join(TOP, "CONTRIBUTING.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", open(page, encoding="utf-8").read()):
            if "://" not in target and not os.path.exists(os.path.join(os.path.dirname(page), target)):
                fail("%s links to %s, which is not there" % (os.path.relpath(page, TOP), target))


def plain(fmt):
    """A format of printf's, or a message as the table has it, with every hole as one sign."""
    fmt = fmt.replace('\\"', '"').replace("%%", "\0")
    fmt = re.sub(r"%[-+ 0#]*\d*(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]", "…", fmt)
    return fmt.replace("\0", "%").replace("`", "'").strip()


LITERAL = r'((?:\s*"(?:[^"\\]|\\.)*")+)'


def strings(text):
    return [plain("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', m))) for m in re.findall(LITERAL, text)]


def check_messages():
    table = open(os.path.join(TOP, "docs", "troubleshooting.md"), encoding="utf-8").read()
    rows = [plain(r) for r in re.findall(r"^\| `` ?(.*?) ?`` \|", table, re.M)]
    warned, known = set(), set()
    for folder in ("policy", "preload", "tracer", "offline"):
        for path in glob.glob(os.path.join(TOP, folder, "**", "*.c"), recursive=True):
            text = open(path, encoding="utf-8").read()
            known.update(strings(text))
            for m in re.finditer(r"(?:log_(?:say|once)\s*\(\s*SAY_(?:WARN|ERROR)|story_warns\s*\(\s*d,\s*STORY_\w+)\s*," + LITERAL, text):
                warned.add(strings(m.group(1))[0])
    warned.discard("…")
    for w in sorted(warned - set(rows)):
        fail("docs/troubleshooting.md has no row for the warning: %s" % w)
    for r in rows:
        if r not in known and not any(r in k for k in known):
            fail("docs/troubleshooting.md has a message that the program does not know: %s" % r)
    if len(rows) < 20 or len(warned) < 10:
        fail("only %d rows, %d warnings: is the table still one?" % (len(rows), len(warned)))


def main():
    if not os.path.exists(os.path.join(B, "remat")):
        print("no remat: skipped")
        return 77
    if os.environ.get("SAN"):
        print("the docs are tried in ordinary builds")
        return 77
    if sys.argv[1:] == ["pytorch"] and not os.path.exists(pytorch()):
        print("no PyTorch: make pytorch")
        return 77
    info = "sh" if len(sys.argv) < 2 else "sh " + sys.argv[1]
    ran = run_blocks(info)
    if info == "sh":
        ran += run_examples()
        check_all_is_run()
        check_links()
        check_conf()
        check_dmem()
        check_questions()
        check_messages()
        if ran < 15:
            fail("only %d blocks ran" % ran)
    print("%d blocks ran" % ran)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
