#!/usr/bin/env python3
"""What another user of the machine can and cannot do: each numbered statement of docs/security.md is the function of that name here. This process is root and
plays the user; `other()` is somebody else (nobody), `VICTIM` a second ordinary user, whose folders in /dev/shm nobody else uses. Without root only what one user can
try alone is tried."""
import ctypes
import glob
import json
import os
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import harness as h

MIB = 1 << 20
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OTHER = 65534
VICTIM = next(uid for uid in range(61239, 65000) if not glob.glob("/dev/shm/remat*-%d*" % uid) + glob.glob("/tmp/remat*-%d*" % uid)) # nobody's on this machine
LEAVE = os.path.join(h.B, "programs", "leave")
MLP = os.path.join(h.B, "workloads", "mlp")
PLANS = ["run", "--limit", "12M", "--policy", "plan", "--solver", "chen-sqrt", "--", MLP, "--iters", "12", "--batch", "2048", "--layers", "12"]
GOLDEN = os.path.join(TOP, "tests", "golden", "mlp.json")
# Takes 8 MiB of the device in a group, and again for each line that it is told.
MEMBER = ("import ctypes, sys\nc, p = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()\nassert c.cuInit(0) == 0\n"
          "assert c.cuDevicePrimaryCtxRetain(ctypes.byref(p), 0) == 0 and c.cuCtxSetCurrent(p) == 0\n"
          "print(c.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(8 << 20), None), flush=True)\n"
          "for line in sys.stdin: print(c.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(8 << 20), None), flush=True)")
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(p, os.X_OK)), sys.executable)  # one that other users may run
check = h.Checks()
tmp = None


def clean_env(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REMAT_", "SIMGPU_")) and k not in ("LD_PRELOAD", "TMPDIR", "XDG_RUNTIME_DIR")}
    env.update(REMAT_SIMGPU="1", SIMGPU_MEM="512M", SIMGPU_GRANULARITY="65536", XDG_CACHE_HOME=os.path.join(tmp, "cache"),
               LD_LIBRARY_PATH=os.path.join(h.B, "simgpu"))
    env.update(more)
    return env


PACKAGE = "import sys\nsys.path.insert(0, %r)\nimport remat\nremat.Plan(steps=[]).save(sys.argv[1])" % os.path.join(TOP, "offline", "python")


def remat(*words, env=None, uid=None, cwd=None, timeout=120):
    """The command; or its package for Python, which saves a plan."""
    command = [PYTHON, "-c", PACKAGE] + list(words[1:]) if words[0] == "python" else [h.REMAT] + [str(w) for w in words]
    return subprocess.run(command, env=env or clean_env(), capture_output=True, text=True, errors="replace", cwd=cwd or tmp,
                          user=uid, group=uid, extra_groups=[] if uid else None, timeout=timeout, stdin=subprocess.DEVNULL)


def train(*options, **how):
    return remat("run", "--limit", "64M", *options, "--", MLP, "--iters", "3", "--batch", "64", **how)


def other(act, uid=OTHER):
    """Calls `act` as another user, in a child; what it raises is a failure of the test."""
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.umask(0)
            act()
            os._exit(0)
        except BaseException as e: # noqa: B902
            print(e, flush=True)
            os._exit(1)
    check.ok(os.waitpid(pid, 0)[1] == 0, "the other user's part")


def write(path, text="precious\n", mode=None):
    with open(path, "w") as f:
        f.write(text)
    if mode is not None:
        os.chmod(path, mode)


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError as e:
        return str(e)


def folder(name, mode=0o755, uid=None):
    path = os.path.join(tmp, name)
    os.makedirs(path)
    os.chmod(path, mode)
    if uid is not None:
        os.chown(path, uid, uid)
    return path


def writers(to):
    """Every command that writes a file that its user names: [words], [name of the file]."""
    yield ["plan", GOLDEN, "--limit", "100%", "--solver", "none", "-o", to]
    yield ["report", GOLDEN, "--time-limit", "0", "-o", to]
    for f in ("perfetto", "memory-viz", "dot", "sqlite"):
        yield ["export", GOLDEN, "--format", f, "-o", to]
    yield ["sweep", GOLDEN, "--limits", "100%", "--solvers", "none", "--plot", to]
    yield ["solve", os.path.join(TOP, "tests", "golden", "chain.json"), "-o", to]
    for option in ("--stats", "--trace-out"):
        yield ["run", "--limit", "64M", option, to, "--", MLP, "--iters", "8", "--batch", "64"]
    yield ["trace", "-o", to, "--", MLP, "--iters", "8", "--batch", "64"]
    yield ["python", to]


# ---- what is trusted ---------------------------------------------------------------------------------------------------------

def with_mounts(mounts, words, uid=0):
    """Runs these words after those mounts, which nobody else sees; None where there are none of one's own. The build, which may lie in a folder that is mounted over, is
    /mnt/build as well, and /mnt takes files."""
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode:
        return None
    script = ("set -e; mount -t tmpfs -o mode=1777 tmpfs /mnt; mkdir /mnt/build; mount --bind '%s' /mnt/build; %s; cd /\nexec setpriv --reuid=%d --regid=%d --clear-groups \"$@\""
              % (h.B, mounts, uid, uid))
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *words], env=clean_env(LD_LIBRARY_PATH="/mnt/build/simgpu", XDG_CACHE_HOME="/mnt/cache"), cwd="/", input="",
                          capture_output=True, text=True, timeout=120)


def T1():
    into = folder("installed")
    subprocess.run(["make", "-C", TOP, "-s", "B=" + h.B, "install", "PREFIX=/usr", "DESTDIR=" + into], check=True, stdout=subprocess.DEVNULL)
    files = [os.path.join(d, f) for d, _, names in os.walk(into) for f in names]
    check.ok(len(files) > 5 and not [f for f in files if os.lstat(f).st_mode & 0o6000], "no part has rights of its own", str(files))
    check.ok(not [f for f in files if f.endswith((".service", ".socket", ".timer"))], "no service", str(files))


def T2():
    theirs, mine = folder("theirs", uid=OTHER), folder("mine", 0o700)
    write(os.path.join(mine, "target"))
    other(lambda: os.symlink(os.path.join(mine, "target"), os.path.join(theirs, "link")))
    p = remat("plan", GOLDEN, "--limit", "100%", "--solver", "none", "-o", os.path.join(theirs, "link"))
    check.ok(p.returncode == 0 and "plan-1" in read(os.path.join(mine, "target")), "a link in its owner's folder is followed", p.stderr)


def T3():
    open_to_all = folder("groups", 0o1777)
    uuid = None
    mine = folder("groups-mine", 0o700)
    job = member(clean_env(REMAT_GROUP_DIR=mine), None)
    is_in(job)
    for path in glob.glob(os.path.join(mine, "pair@*")):
        uuid = path.rsplit("@", 1)[1]
    leave_member(job)
    if not check.ok(uuid is not None, "a ledger in REMAT_GROUP_DIR"):
        return
    other(lambda: write(os.path.join(open_to_all, "pair@" + uuid), "", 0o666))
    job = member(clean_env(REMAT_GROUP_DIR=open_to_all), None)
    out, err = leave_member(job)
    check.ok(out in ([], ["2"]) and "another user's, in a folder that everybody may write to" in err, "a ledger that was laid there is refused", "%s %s" % (out, err))
    shared = folder("groups-shared", 0o2770)
    os.chown(shared, 0, OTHER)
    os.chmod(shared, 0o2770)
    jobs = [member(clean_env(REMAT_GROUP_DIR=shared), uid, OTHER) for uid in (OTHER, VICTIM)]
    first, ledgers = [is_in(j) for j in jobs], glob.glob(shared + "/pair@*")
    check.ok(first == ["0", "0"] and len(ledgers) == 1, "users that share a folder share a ledger")
    leave_member(jobs[0])
    victim = jobs[1]

    def more():
        try:
            victim.stdin.write("more\n")
            victim.stdin.flush()
        except OSError:
            pass
        return victim.stdout.readline().strip()

    def take(): # the limit that all of them share, behind the mark
        with open(ledgers[0], "r+b") as f:
            f.seek(8)
            f.write(struct.pack("<Q", 1))
    check.ok(more() == "0", "there is memory for both")
    other(take)
    out, err = leave_member(member(clean_env(REMAT_GROUP_DIR=shared), VICTIM, OTHER))
    check.ok(out == [] and "has a limit of 1," in err, "one of them can take the group's memory: nobody comes in any more", "%s %s" % (out, err))
    other(lambda: os.truncate(ledgers[0], 0))
    check.ok(more() == "" and victim.wait(60) == -signal.SIGBUS, "or cut the ledger short under the others, which ends them", str(victim.poll()))


def T4():
    open_to_all, sticky = folder("scratch", 0o777), folder("sticky", 0o1777)
    for base, used in ((open_to_all, False), (sticky, True)):
        seen = watch_planning(base, clean_env(TMPDIR=base))
        check.ok(bool(seen) == used, "TMPDIR of mode %o" % (os.stat(base).st_mode & 0o7777), str(seen))
    told = os.path.join(open_to_all, "told-tmp") # by a user that nobody else is: no other run's folder is found
    p = remat(*["exec:find /tmp -maxdepth 1 -user %d -name 'remat-plan-*' -printf '%%p %%m\\n' >'%s'; exit 3" % (VICTIM, told) if w == "chen-sqrt" else w for w in PLANS],
              env=clean_env(TMPDIR=open_to_all), uid=VICTIM, cwd="/")
    check.ok(p.returncode == 0 and re.fullmatch(r"/tmp/remat-plan-\d+-\w{6} 700\n", read(told)), "then /tmp", "%s %s" % (read(told), p.stderr))
    places = ("/tmp", "/var/tmp", "/dev/shm")
    plans = [w.replace(MLP, "/mnt/build/workloads/mlp").replace("chen-sqrt", "exec:find %s -maxdepth 1 -name 'remat-plan-*' >/mnt/told; exit 3" % " ".join(places)) for w in PLANS]
    for n in (1, 2):
        p = with_mounts("; ".join("mount -t tmpfs -o mode=777 tmpfs " + d for d in places[:n]), ["sh", "-c", '"$@" && cat /mnt/told', "sh", "/mnt/build/remat", *plans])
        if p is None:
            return print("no mounts of one's own here: T4 is cut short")
        found = [line for line in p.stdout.splitlines() if "/remat-plan-" in line]
        check.ok(p.returncode == 0 and len(found) == 1 and found[0].startswith(places[n] + "/remat-plan-"), "then %s" % places[n], "%s %s" % (found, p.stderr))


# ---- the files that are made --------------------------------------------------------------------------------------------------

def plan_run(env, uid=None, **how):
    return remat(*PLANS, env=env, uid=uid, **how)


def watch_planning(base, env, uid=None):
    """Runs a program that plans, by a solver that looks around; {name: (mode of the folder, {file: mode})} of the planning folders in `base` meanwhile."""
    told, seen = os.path.join(base, "told"), {}
    solver = "exec:find '%s' -printf '%%m %%P\\n' >'%s'; exit 3" % (base, told)
    p = remat(*[solver if word == "chen-sqrt" else word for word in PLANS], env=env, uid=uid)
    check.ok(p.returncode == 0 and os.path.exists(told), "a run that plans", p.stderr)
    for mode, path in (line.split(" ", 1) for line in read(told).splitlines()):
        name, _, file = path.partition("/")
        if not name.startswith("remat-plan-"):
            continue
        if file:
            seen[name][1][file] = int(mode, 8)
        else:
            seen[name] = (int(mode, 8), {})
    return seen


def F1():
    home, work, scratch, status = folder("home"), folder("work"), folder("f1-tmp"), folder("f1-status", 0o700)
    before = set(own_folders("remat")) | set(own_folders("remat-groups"))
    p = remat("run", "--stats", "stats.json", "--trace-out", "trace.json", *PLANS[1:], cwd=work,
              env=clean_env(HOME=home, TMPDIR=scratch, REMAT_STATUS_DIR=status, REMAT_LOG="debug", XDG_CACHE_HOME=os.path.join(home, ".cache")))
    check.ok(p.returncode == 0 and sorted(os.listdir(work)) == ["stats.json", "trace.json"], "what was asked for, and no more", "%s %s" % (os.listdir(work), p.stderr[-300:]))
    found = [os.path.relpath(os.path.join(at, f), home) for at, _, files in os.walk(home) for f in files]
    check.ok(all(re.fullmatch(r"\.cache/remat/((facts|plan)-[0-9a-f]{32}|lock)", f) for f in found), "the cache alone in the home folder", str(found))
    check.ok(not os.listdir(scratch) and not os.listdir(status), "nothing is left elsewhere", "%s %s" % (os.listdir(scratch), os.listdir(status)))
    check.ok("remat[" in p.stderr, "messages go to stderr")
    check.ok(set(own_folders("remat")) | set(own_folders("remat-groups")) == before, "no folder beside")


def own_folders(sort, uid=None):
    uid = os.geteuid() if uid is None else uid
    found = [d for p in ("/run/remat/%d/" % uid, "/run/user/%d/" % uid) for d in glob.glob(p + sort)]
    found += [d for p in ("/dev/shm/", "/tmp/") for d in glob.glob("%s%s-%d" % (p, sort, uid)) + glob.glob("%s%s-%d-??????" % (p, sort, uid))]
    return [d for d in found if os.path.isdir(d) and not os.path.islink(d) and os.lstat(d).st_uid == uid]


def member(env, uid, gid=None, group="pair"):
    job = subprocess.Popen([h.REMAT, "run", "--group", group, "--group-limit", "64M", "--", PYTHON, "-c", MEMBER], env=env, user=uid,
                           group=gid or uid, extra_groups=[] if uid else None, umask=0o007, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job.first = None
    return job


def is_in(job):
    """What its allocation answered: 0, it has memory."""
    if job.first is None:
        job.first = job.stdout.readline().strip()
    return job.first


def leave_member(job):
    first = is_in(job)
    out, err = job.communicate("", timeout=60)
    return [first] if first else out.split(), err


def F2():
    scratch = folder("f2-tmp", 0o1777)
    seen = watch_planning(scratch, clean_env(TMPDIR=scratch), VICTIM)
    modes = {f: m for _, files in seen.values() for f, m in files.items()}
    check.ok(seen and all(m == 0o700 for m, _ in seen.values()) and modes.get("lock") == 0o600 and modes.get("plan.err", 0o600) == 0o600, "the planner's", str(seen))
    job = member(clean_env(), VICTIM)
    check.ok(is_in(job) == "0", "a member has memory")
    places = own_folders("remat", VICTIM) + own_folders("remat-groups", VICTIM)
    found = {d: (os.stat(d).st_mode & 0o7777, {f: os.stat(os.path.join(d, f)).st_mode & 0o7777 for f in os.listdir(d)}) for d in places}
    leave_member(job)
    files = {f: m for _, fs in found.values() for f, m in fs.items()}
    check.ok(len(found) == 2 and all(m == 0o700 for m, _ in found.values()), "folders", str(found))
    check.ok(any(f.isdigit() and m == 0o600 for f, m in files.items()) and files.get(".join") == 0o600 and
             [m & 0o007 for f, m in files.items() if f.startswith("pair@")] in ([0], [4]), "files", str(found))
    ledgers = [os.path.join(d, f) for d in places for f in found[d][1] if f.startswith("pair@")]
    check.ok(len(ledgers) == 1 and os.path.exists(ledgers[0]) and groups_of(VICTIM) == ([], []), "a ledger stays, and says nothing once its members have ended", str(ledgers))
    for d in places:
        check.ok(subprocess.run(["ls", d], user=OTHER, group=OTHER, extra_groups=[], capture_output=True).returncode != 0, "nobody else reads " + d)
    # an output of the user's own keeps its permissions; another name gets a new file's
    mine = folder("f2-mine")
    write(os.path.join(mine, "mine"), mode=0o640)
    for name, want in (("mine", 0o640), ("new", 0o666 & ~umask())):
        p = remat("plan", GOLDEN, "--limit", "100%", "--solver", "none", "-o", os.path.join(mine, name))
        got = os.stat(os.path.join(mine, name)).st_mode & 0o7777
        check.ok(p.returncode == 0 and got == want, "%s: mode" % name, "%o, not %o" % (got, want))


def umask():
    was = os.umask(0)
    os.umask(was)
    return was


def F3():
    d = folder("f3")
    target, link, pipe = (os.path.join(d, n) for n in ("target", "link", "pipe"))
    write(target)
    os.link(target, target + "2")
    os.symlink("target", link)
    os.mkfifo(pipe)
    for words in writers(link):
        write(target)
        p = remat(*words)
        check.ok(p.returncode == 0 and os.path.islink(link) and "precious" not in read(target), "%s through a link" % words[0], p.stderr)
    check.ok(read(target + "2") == "precious\n", "renamed over it: the other name has the old file")
    got = []
    t = threading.Thread(target=lambda: got.append(read(pipe)))
    t.start()
    remat("plan", GOLDEN, "--limit", "100%", "--solver", "none", "-o", pipe)
    t.join(60)
    check.ok(stat.S_ISFIFO(os.stat(pipe).st_mode) and got and "plan-1" in got[0], "a pipe is written to as it is")
    p = train("--stats", "/dev/null")
    check.ok(p.returncode == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode), "a device stays one", p.stderr)
    check.ok(not glob.glob(os.path.join(d, ".remat-*")), "nothing is left beside it")
    # killed between the two: the old file stands, and what is beside it stays
    words, beside = ["report", GOLDEN, "--time-limit", "0", "-o", target], []
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(watch, d.encode(), 0x100) # IN_CREATE
    for _ in range(200):
        write(target, mode=0o640)
        select.select([watch], [], [], 0)[0] and os.read(watch, 65536)
        p = subprocess.Popen([h.REMAT] + words, env=clean_env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        select.select([watch], [], [], 60)
        p.kill()
        p.wait()
        beside = glob.glob(os.path.join(d, ".remat-*"))
        if beside:
            break
    os.close(watch)
    check.ok(len(beside) == 1 and read(target) == "precious\n" and os.stat(beside[0]).st_mode & 0o7777 in (0o600, 0o640), "killed while it writes", str(beside))
    check.ok(remat(*words).returncode == 0 and "precious" not in read(target) and glob.glob(os.path.join(d, ".remat-*")) == beside, "nobody takes away what it left")


def F4():
    made, was = [], None

    def make(path, mode=0o700, uid=VICTIM):
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            os.mkdir(parent, 0o755)
            made.append(parent)
        os.mkdir(path, 0o700)
        made.append(path)
        os.chmod(path, mode)
        os.chown(path, uid, uid)

    def used():
        job = member(clean_env(), VICTIM)
        check.ok(is_in(job) == "0", "a member has memory")
        where = {os.path.dirname(d) for d in own_folders("remat", VICTIM) + own_folders("remat-groups", VICTIM)}
        leave_member(job)
        forget(VICTIM)
        for path in made:
            for name in ("remat", "remat-groups"):
                shutil.rmtree(os.path.join(path, name), ignore_errors=True)
        return where

    users, roots = "/run/user/%d" % VICTIM, "/run/remat/%d" % VICTIM
    try:
        check.ok(used() == {"/dev/shm"}, "/dev/shm where there is neither")
        if os.path.isdir("/run/remat"): # root's umask may have closed it, where an earlier version made it
            was = stat.S_IMODE(os.stat("/run/remat").st_mode)
            os.chmod("/run/remat", 0o755)
        make(users)
        check.ok(used() == {users}, "/run/user/UID before that")
        make(roots)
        check.ok(used() == {roots}, "/run/remat/UID before all")
        for what, mode, uid in (("another user's", 0o700, OTHER), ("one that others may write to", 0o777, VICTIM)):
            os.chown(roots, uid, uid)
            os.chmod(roots, mode)
            check.ok(used() == {users}, "%s is not believed" % what)
    finally:
        for path in reversed(made):
            shutil.rmtree(path, ignore_errors=True)
        if was is not None:
            os.chmod("/run/remat", was)
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        script = "mount -t tmpfs -o mode=755 tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && umask 077 && \"$@\" && stat -c '%a %U' /run/remat /run/remat/0 /run/remat/0/remat"
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", h.REMAT, "run", "--limit", "64M", "--", MLP, "--iters", "2", "--batch", "64"], env=clean_env(), cwd="/",
                           capture_output=True, text=True, timeout=120)
        check.ok(p.returncode == 0 and p.stdout.endswith("755 root\n700 root\n700 root\n"), "what root makes, whatever its umask is", p.stdout[-200:] + p.stderr[-200:])


# ---- what another user cannot do ----------------------------------------------------------------------------------------------

def N1():
    private = folder("n1-private", 0o700)
    for mode in (0o1777, 0o777, 0o1773):
        shared = folder("n1-%o" % mode, mode)
        victim, inside = os.path.join(private, "victim"), os.path.join(private, "x.json")
        other(lambda: os.symlink(victim, os.path.join(shared, "last")))
        other(lambda: os.symlink(private, os.path.join(shared, "way")))
        other(lambda: os.symlink(os.path.join(private, "new"), os.path.join(shared, "dangling")))
        other(lambda: os.symlink("last", os.path.join(shared, "twice")))
        os.symlink(os.path.join(shared, "last"), os.path.join(private, "own")) # the user's own link, to the other's
        for name in ("last", "way/x.json", "dangling", "twice", "../n1-private/own"):
            write(victim)
            write(inside)
            for words in writers(os.path.join(shared, name)):
                p = remat(*words)
                check.ok(p.returncode in (1, 125) and "a link of another user's" in p.stderr, "%s to %s in a folder of mode %o: refused" % (words[0], name, mode),
                         "%d %s" % (p.returncode, p.stderr))
            check.ok(read(victim) == read(inside) == "precious\n" and not os.path.exists(os.path.join(private, "new")), "what %s names stays" % name)
        # the user's own link there is followed, and the folder's owner's
        os.symlink(victim, os.path.join(shared, "mine"))
        p = train("--stats", os.path.join(shared, "mine"))
        check.ok(p.returncode == 0 and "iterations" in read(victim), "one's own link is followed", p.stderr)
        os.unlink(os.path.join(private, "own"))
    theirs = folder("n1-theirs", 0o1777, uid=OTHER)
    other(lambda: os.symlink(os.path.join(private, "victim"), os.path.join(theirs, "link")))
    p = train("--stats", os.path.join(theirs, "link"))
    check.ok(p.returncode == 0, "as the kernel: the folder's owner's link is followed", p.stderr)
    # a name that is known when it is written only
    shared = folder("n1-late", 0o1777)
    write(victim)
    p = remat("run", "--limit", "64M", "--stats", os.path.join(shared, "%p.json"), "--", "sh", "-c", "exec %s --iters 3 --batch 64" % MLP)
    name = os.path.basename((glob.glob(shared + "/*.json") or [""])[0])
    check.ok(p.returncode == 0 and name[:-5].isdigit(), "%p", p.stderr)
    other(lambda: [os.symlink(victim, os.path.join(shared, "%d.json" % n)) for n in range(2, 40000) if "%d.json" % n != name])
    p = remat("run", "--limit", "64M", "--stats", os.path.join(shared, "%p.json"), "--", "sh", "-c", "exec %s --iters 3 --batch 64" % MLP)
    check.ok(p.returncode == 0 and read(victim) == "precious\n", "a link at a name with %p is not followed", p.stderr)


def N2():
    for mode, sticky in ((0o1777, True), (0o777, False), (0o1775, True)):
        for theirs in (0o4777, 0o2777, 0o666, 0o1777):
            shared = folder("n2-%o-%o" % (mode, theirs), mode)
            if mode == 0o1775:
                os.chown(shared, 0, OTHER)
            target = os.path.join(shared, "out")
            other(lambda: write(target, "theirs\n", theirs))
            for words in list(writers(target))[:3] + list(writers(target))[-3:]:
                p, st = remat(*words), os.lstat(target)
                check.ok((st.st_uid == OTHER) == sticky and (p.returncode != 0) == sticky, "%s over a file of mode %o in a folder of mode %o" % (words[0], theirs, mode),
                         "%d uid %d %s" % (p.returncode, st.st_uid, p.stderr))
                if sticky:
                    check.ok(read(target) == "theirs\n" and "another user's" in p.stderr, "it stays, and the line says why", p.stderr)
                else:
                    check.ok(st.st_mode & 0o7777 == 0o666 & ~umask(), "a new file's permissions", "%o" % st.st_mode)
                    os.unlink(target)
                    other(lambda: write(target, "theirs\n", theirs))
    # the user's own: permissions stay, other bits do not
    mine = folder("n2-mine", 0o1777)
    for mode in (0o6755, 0o4777, 0o3640):
        target = os.path.join(mine, "own-%o" % mode)
        write(target, mode=mode)
        p = train("--stats", target)
        check.ok(p.returncode == 0 and os.stat(target).st_mode & 0o7777 == mode & 0o777, "own file of mode %o" % mode, "%o %s" % (os.stat(target).st_mode, p.stderr))
    # a file whose group the new one cannot have: that group's rights are nobody's (VICTIM is in no group but its own)
    theirs = folder("n2-group", 0o777)
    target = os.path.join(theirs, "grouped")
    write(target, mode=0o664)
    os.chown(target, VICTIM, OTHER)
    p = train("--stats", target, uid=VICTIM)
    st = os.stat(target)
    check.ok(p.returncode == 0 and st.st_uid == VICTIM and st.st_gid == VICTIM and st.st_mode & 0o7777 == 0o644, "group", "%o %d %s" % (st.st_mode, st.st_gid, p.stderr))
    # a pipe that somebody else reads
    pipe = os.path.join(folder("n2-pipe", 0o1777), "pipe")
    other(lambda: os.mkfifo(pipe, 0o666))
    reader = subprocess.Popen(["timeout", "20", "cat", pipe], user=OTHER, group=OTHER, extra_groups=[], stdout=subprocess.PIPE)
    for words in writers(pipe):
        p = remat(*words)
        check.ok(p.returncode != 0 and "another user's" in p.stderr, "%s into another user's pipe" % words[0], p.stderr)
    fd = os.open(pipe, os.O_WRONLY)
    os.close(fd)
    check.ok(reader.communicate()[0] == b"", "nothing came out of it")


def N3():
    shared = folder("n3", 0o1777)
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(watch, shared.encode(), 0x100) # IN_CREATE
    for i in range(3):
        remat("report", GOLDEN, "--time-limit", "0", "-o", os.path.join(shared, "page%d.html" % i))
    remat("python", os.path.join(shared, "plan.json"))
    names = set(re.findall(rb"\.remat[^\0]*", os.read(watch, 65536)))
    os.close(watch)
    check.ok(len(names) == 4 and all(re.fullmatch(rb"\.remat-[0-9a-f]{16}\.tmp", n) for n in names) and
             len({n[7:13] for n in names}) == 4 and len({n[17:23] for n in names}) == 4, "names that cannot be foretold", str(names))
    # the names that an earlier version could be foretold to take, for every process there may be
    other(lambda: [write(os.path.join(shared, ".remat-%d-%d.tmp" % (pid, n)), "") for pid in range(os.getpid(), os.getpid() + 60) for n in range(101)])
    for _ in range(3):
        p = remat("report", GOLDEN, "--time-limit", "0", "-o", os.path.join(shared, "page.html"))
        check.ok(p.returncode == 0, "a report is written", p.stderr)


def gone_pid():
    p = subprocess.Popen(["true"])
    p.wait()
    return p.pid


def leaving(base, name, mode=0o700, said=None, inode=None):
    """A planning folder as a killed process leaves it; `said`, `inode`: what its lock says instead."""
    d = os.path.join(base, name)
    os.makedirs(d, mode=0o700)
    os.chmod(d, mode)
    st = os.stat(d)
    write(os.path.join(d, "lock"), "remat plan 1 %s %d %d\n" % (said or name, st.st_dev, inode or st.st_ino), 0o600)
    for f in ("trace.json", "plan.json", "plan.json.best", "plan.err", ".remat-0123456789abcdef.tmp"):
        write(os.path.join(d, f))
    return d


def N4():
    base, pid = folder("n4", 0o1777), gone_pid()
    free = ["remat-70b-run", "remat-2026", "remat-7", "remat-%d" % pid, "remat-%d-run" % pid, "remat-%d-aBcD12" % pid, "remat-plan-%d" % pid, "remat-plan-%d-run" % pid,
            "remat-plan-%d-backup" % pid, "remat-plan-%d-aBcD123" % pid, "remat-plan-70b-aBcD12", "remat-plan-0%d-aBcD12" % pid, "remat-plan-%d-aB.D12" % pid]
    stays = []
    for name in free:
        d = os.path.join(base, name)
        os.makedirs(d)
        for f in ("trace.json", "plan.json", "plan.json.best", "plan.err"):
            write(os.path.join(d, f))
        stays.append(d)
    write(os.path.join(base, "remat-plan-%d-backup" % pid, "lock"), "remat plan 1\n")
    ours = [leaving(base, "remat-plan-%d-aaaaa%d" % (pid, i)) for i in range(2)]
    alive = subprocess.Popen(["sleep", "600"])
    keep = [leaving(base, "remat-plan-%d-copied" % pid, said="remat-plan-%d-aaaaa0" % pid), leaving(base, "remat-plan-%d-copy22" % pid, inode=1),
            leaving(base, "remat-plan-%d-opened" % pid, mode=0o755), leaving(base, "remat-plan-%d-living" % alive.pid), leaving(base, "remat-plan-%d-noted1" % pid),
            leaving(base, "remat-plan-%d-linked" % pid), leaving(base, "remat-plan-%d-cutoff" % pid), leaving(base, "remat-plan-%d-locked" % pid)]
    write(os.path.join(keep[4], "notes.txt"))
    os.unlink(os.path.join(keep[5], "plan.json"))
    os.symlink("/etc/hostname", os.path.join(keep[5], "plan.json"))
    write(os.path.join(keep[6], "lock"), "remat plan 1 ")
    holder = subprocess.Popen([PYTHON, "-c", "import fcntl, sys\nf = open(sys.argv[1], 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint(1, flush=True)\nsys.stdin.read()",
                               os.path.join(keep[7], "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    theirs = folder("n4/remat-plan-%d-theirs" % pid, 0o700)
    write(os.path.join(theirs, "trace.json"))
    if os.getuid() == 0:
        st = os.stat(theirs)
        write(os.path.join(theirs, "lock"), "remat plan 1 %s %d %d\n" % (os.path.basename(theirs), st.st_dev, st.st_ino), 0o600)
        os.chown(theirs, OTHER, OTHER)
    other_folder = leaving(base, "elsewhere-%d" % pid)
    os.symlink(other_folder, os.path.join(base, "remat-plan-%d-symbol" % pid))
    p = plan_run(clean_env(TMPDIR=base))
    check.ok(p.returncode == 0, "a run that plans", p.stderr)
    for d in stays:
        check.ok(all(read(os.path.join(d, f)) == "precious\n" for f in ("trace.json", "plan.json", "plan.json.best", "plan.err")), "%s stays" % os.path.basename(d))
    for d in keep + [theirs, other_folder]:
        check.ok(read(os.path.join(d, "trace.json")) == "precious\n", "%s stays" % os.path.basename(d))
    for d in ours:
        check.ok(not os.path.exists(d), "what a killed process has left goes", d)
    holder.communicate("")
    alive.kill()
    alive.wait()
    # what the user has asked to keep is kept, by later runs too
    p = plan_run(clean_env(TMPDIR=base, REMAT_KEEP_PLAN="1"))
    mine = [d for d in glob.glob(os.path.join(base, "remat-plan-*-??????")) if d not in keep + stays + ours + [theirs] and not os.path.islink(d)]
    check.ok(len(mine) == 1 and "plan-1" in read(os.path.join(mine[0], "plan.json")), "REMAT_KEEP_PLAN keeps", str(mine))
    plan_run(clean_env(TMPDIR=base))
    check.ok(len(mine) == 1 and "plan-1" in read(os.path.join(mine[0], "plan.json")), "a later run leaves what was kept", str(mine))
    # a killed planner's real folder: the next run takes it away
    base = folder("n4-killed", 0o1777)
    job = subprocess.Popen([h.REMAT, "run", "--limit", "12800K", "--policy", "plan", "--", LEAVE, "wait"], env=clean_env(TMPDIR=base), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if any(os.path.exists(os.path.join(d, "lock")) for d in glob.glob(base + "/remat-plan-*")):
            break
        time.sleep(0.01)
    left = glob.glob(base + "/remat-plan-*")
    check.ok(bool(left), "a planner's folder is there")
    plan_run(clean_env(TMPDIR=base))
    check.ok(glob.glob(base + "/remat-plan-*") in (left, []), "a living one's folder stays, the next one's goes", str(glob.glob(base + "/*")))
    job.kill()
    job.wait()
    plan_run(clean_env(TMPDIR=base))
    check.ok(not os.listdir(base), "a killed one's goes", str(os.listdir(base)))


# layout of a page, policy/process/status.h
PAGE_MAGIC, PAGE_BYTES, PAGE_DEVICES = 0x33746174736D6572, 3432, 360


def page(pid, swapped=0, command=b"x", group=b""):
    data = bytearray(PAGE_BYTES)
    struct.pack_into("<QqQ200s64s64sI", data, 0, PAGE_MAGIC, pid, 1700000000, command, group, b"here", 1)
    struct.pack_into("<i16s33s3x7Q", data, PAGE_DEVICES, 0, b"0000:01:00.0", b"0" * 32, 8 << 30, 1, 1, 1, 0, 1, swapped)
    return bytes(data)


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


LOCK = ("import fcntl, sys\nfor p in sys.argv[1:]:\n    f = open(p, 'r+')\n    fcntl.lockf(f, fcntl.LOCK_EX)\n    globals()['keep' + p] = f\n"
        "print('held', flush=True)\nsys.stdin.read()")


def hold_lock(uid, *paths):
    p = subprocess.Popen([PYTHON, "-c", LOCK] + list(paths), user=uid, group=uid, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check.ok(p.stdout.readline() == "held\n", "a lock is held")
    return p


def N5():
    d = folder("n5", 0o700)
    env = clean_env(REMAT_STATUS_DIR=d)
    pid = gone_pid()
    files = {"2026": b"precious", ".7": b"precious", str(pid): b"x" * PAGE_BYTES, "70": page(70)[:-1], "71": page(71) + b"x", "notes": page(72), "007x": page(7)}
    for name, data in files.items():
        put(os.path.join(d, name), data)
    put(os.path.join(d, "4242"), page(4242))
    remat("status", env=env)
    check.ok(not os.path.exists(os.path.join(d, "4242")), "a page whose process has ended goes")
    check.ok(all(open(os.path.join(d, n), "rb").read() == data for n, data in files.items() if os.path.exists(os.path.join(d, n))) and
             len(os.listdir(d)) == len(files), "all else stays", str(os.listdir(d)))
    # a file at the name that a program's page will have
    script = 'echo precious >"$REMAT_STATUS_DIR/$$"; echo precious >"$REMAT_STATUS_DIR/.$$"; echo $$; exec "$@"'
    for name, text in (("both", script), ("page", script.replace('echo precious >"$REMAT_STATUS_DIR/.$$"; ', ""))):
        p = remat("run", "--limit", "64M", "--", "sh", "-c", text, "sh", MLP, "--iters", "3", "--batch", "64", env=env)
        mine = p.stdout.split("\n")[0]
        check.ok(p.returncode == 0 and read(os.path.join(d, mine)) == "precious\n", "%s: the user's file is not replaced" % name, p.stderr)
        check.ok(name != "both" or read(os.path.join(d, "." + mine)) == "precious\n", "nor the one beside it")


def N9():
    env = clean_env(XDG_CACHE_HOME=os.path.join(tmp, "of-nobody")) # which none before has made
    p = remat(*PLANS, env=env, uid=VICTIM, cwd="/")
    cache = env["XDG_CACHE_HOME"]
    check.ok(p.returncode == 0 and not os.path.exists(cache), "a folder that the user cannot make is no failure", p.stderr)
    home = folder("n9", 0o700, VICTIM)
    env = clean_env(XDG_CACHE_HOME=home)
    check.ok(remat(*PLANS, env=env, uid=VICTIM, cwd="/").returncode == 0, "a run")
    cache = os.path.join(home, "remat")
    entries = [os.path.join(cache, n) for n in os.listdir(cache) if n.startswith("facts-")]
    listed = lambda: remat("known", "list", env=env, uid=VICTIM, cwd="/").stdout
    check.ok(len(entries) == 1 and "ways to launch" in listed(), "keeps facts", str(os.listdir(cache)))
    for what, do, undo in (("another's file", lambda: os.chown(entries[0], OTHER, OTHER), lambda: os.chown(entries[0], VICTIM, VICTIM)),
                           ("a file that others may write", lambda: os.chmod(entries[0], 0o666), lambda: os.chmod(entries[0], 0o600)),
                           ("a folder that others may write", lambda: os.chmod(cache, 0o777), lambda: os.chmod(cache, 0o700)),
                           ("another's folder", lambda: os.chown(cache, OTHER, VICTIM), lambda: os.chown(cache, VICTIM, VICTIM))):
        do()
        check.ok("ways to launch" not in listed(), what + " is not read", listed())
        undo()
    check.ok("ways to launch" in listed(), "and is when it is the user's again")


def squats(where):
    """What somebody may lay at a name: {kind: function}."""
    return {"folder": lambda p: os.mkdir(p, 0o700), "open": lambda p: os.mkdir(p, 0o777), "file": lambda p: write(p, "x"),
            "link": lambda p: os.symlink(where, p), "dangling": lambda p: os.symlink("/nonexistent/x", p), "pipe": os.mkfifo}


def fixed_names(uid, parents=("/dev/shm",)):
    return ["%s/%s-%d" % (p, sort, uid) for p in parents for sort in ("remat", "remat-groups")]


EVERYWHERE = ("/dev/shm", "/tmp")


def forget(uid):
    for pattern in ("/dev/shm/remat-%d*", "/dev/shm/remat-groups-%d*", "/tmp/remat-%d*", "/tmp/remat-groups-%d*"):
        for path in glob.glob(pattern % uid):
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def groups_of(uid):
    got = json.loads(remat("status", "--json").stdout)
    return [sorted(m["pid"] for m in g["members"]) for g in got["groups"] if g["user"] == str(uid)], [p["pid"] for p in got["processes"] if p["user"] == str(uid)]


def N6():
    bait = folder("n6-bait", 0o755, uid=VICTIM) # a folder of the victim's that a link may lead to
    for kind, lay in squats(bait).items():
        forget(VICTIM)
        other(lambda: [lay(p) for p in fixed_names(VICTIM, EVERYWHERE)])
        jobs = [member(clean_env(), VICTIM) for _ in range(2)]
        check.ok([is_in(j) for j in jobs] == ["0", "0"], "%s at the names: members have memory" % kind)
        groups, pages = groups_of(VICTIM)
        check.ok(len(groups) == 1 and len(groups[0]) == 2 and sorted(pages) == groups[0], "%s at the names: they meet, and are seen" % kind, "%s %s" % (groups, pages))
        check.ok(not os.listdir(bait), "nothing came into the folder that the link names")
        for j in jobs:
            _, err = leave_member(j)
            check.ok("no memory" not in err, "no complaint", err)
    # many at once, while the name is taken, freed and taken again
    for round_ in range(4):
        forget(VICTIM)
        stop = threading.Event()
        squatter = subprocess.Popen([PYTHON, "-c", "import os, sys\nwhile True:\n    for p in sys.argv[1:]:\n        try:\n            os.mkdir(p, 0o700)\n"
                                     "        except OSError:\n            pass\n    for p in sys.argv[1:]:\n        try:\n            os.rmdir(p)\n        except OSError:\n            pass"]
                                    + fixed_names(VICTIM, EVERYWHERE), user=OTHER, group=OTHER, extra_groups=[])
        jobs = [member(clean_env(), VICTIM) for _ in range(6)]
        first = [is_in(j) for j in jobs]
        groups, pages = groups_of(VICTIM)
        check.ok(first == ["0"] * 6 and len(groups) == 1 and len(groups[0]) == 6 and len(pages) == 6, "six at once meet, round %d" % round_, "%s %s %s" % (first, groups, pages))
        squatter.kill()
        squatter.wait()
        stop.set()
        for j in jobs:
            leave_member(j)
    # the group's limit is one limit all the same
    forget(VICTIM)
    other(lambda: [os.mkdir(p, 0o700) for p in fixed_names(VICTIM, EVERYWHERE)])
    jobs = [member(clean_env(), VICTIM) for _ in range(9)] # of 8 MiB each, in 64
    first = sorted(is_in(j) for j in jobs)
    check.ok(first[:7] == ["0"] * 7 and first[-1] == "2", "what is beyond the group's limit is refused", str(first))
    for j in jobs:
        leave_member(j)
    # root has a place that nobody else can take
    taken = [p for p in fixed_names(0, EVERYWHERE) if not os.path.lexists(p)]
    other(lambda: [os.mkdir(p, 0o700) for p in taken])
    jobs = [member(clean_env(), None) for _ in range(2)]
    check.ok([is_in(j) for j in jobs] == ["0", "0"], "root's members have memory")
    for j in jobs:
        leave_member(j)
    for p in taken:
        os.rmdir(p)


def N7():
    forget(VICTIM)
    d = fixed_names(VICTIM)[0]

    def lay():
        os.mkdir(d, 0o755)
        put(os.path.join(d, "4242"), page(4242, swapped=1 << 46))
        os.chmod(os.path.join(d, "4242"), 0o666)
    other(lay)
    holder = hold_lock(OTHER, os.path.join(d, "4242"))
    p = remat("run", "--limit", "40M", "--policy", "swap", "--", MLP, "--iters", "3", uid=VICTIM, cwd="/")
    check.ok(p.returncode == 0, "there is host memory to swap to", p.stderr)
    holder.communicate("")
    forget(VICTIM)
    # REMAT_STATUS_DIR of somebody else's
    theirs = folder("n7", 0o755, uid=OTHER)
    put(os.path.join(theirs, "4242"), page(4242, swapped=1 << 46))
    os.chmod(os.path.join(theirs, "4242"), 0o666)
    holder = hold_lock(OTHER, os.path.join(theirs, "4242"))
    p = remat("run", "--limit", "40M", "--policy", "swap", "--", MLP, "--iters", "3", uid=VICTIM, cwd="/", env=clean_env(REMAT_STATUS_DIR=theirs))
    check.ok(p.returncode == 0, "a folder of somebody else's is not believed", p.stderr)
    holder.communicate("")


def N8():
    forget(VICTIM)
    pages, ledgers = fixed_names(VICTIM)
    uuid = "0" * 32

    def ledger(group):
        data = bytearray(256 + 128 * 128)
        struct.pack_into("<QQQQ33s49s", data, 0, 0x3167646C74616D72, 1 << 30, 0, 1 << 30, uuid.encode(), group)
        struct.pack_into("<I", data, 128, 1)
        struct.pack_into("<q", data, 256, 1)
        return bytes(data)

    def lay():
        os.mkdir(pages, 0o755)
        os.mkdir(ledgers, 0o755)
        os.mkfifo(os.path.join(pages, "11"))
        os.mkfifo(os.path.join(ledgers, "pipe@" + uuid))
        put(os.path.join(pages, "12"), page(12, command=b"\033[31mred\n\xff", group=b"\033]0;x\007"))
        put(os.path.join(ledgers, "bad@" + uuid), ledger(b"\033]0;owned\007"))
        put(os.path.join(ledgers, "good@" + uuid), ledger(b"good"))
        put(os.path.join(ledgers, "short@" + uuid), ledger(b"short")[:300])
        os.symlink("/etc/shadow", os.path.join(ledgers, "link@" + uuid))
        for f in ("bad@", "good@"):
            os.chmod(os.path.join(ledgers, f + uuid), 0o666)
    other(lay, VICTIM)
    holder = hold_lock(VICTIM, os.path.join(pages, "12"), os.path.join(ledgers, "bad@" + uuid), os.path.join(ledgers, "good@" + uuid))
    for form in ([], ["--json"], ["--prometheus"]):
        try:
            p = remat("status", *form, timeout=30)
        except subprocess.TimeoutExpired:
            check.ok(False, "status %s ends" % form)
            continue
        check.ok(p.returncode == 0 and "\033" not in p.stdout and "owned" not in p.stdout, "status %s" % form, "%d %r" % (p.returncode, p.stdout))
        check.ok("good" in p.stdout, "the sound ledger is shown", p.stdout)
    # one that is cut short again and again while it is read
    cutter = subprocess.Popen([PYTHON, "-c", "import os, sys\nd = open(sys.argv[1], 'rb').read()\nwhile True:\n    os.truncate(sys.argv[1], 0)\n"
                               "    os.truncate(sys.argv[1], len(d))\n    f = os.open(sys.argv[1], os.O_WRONLY)\n    os.write(f, d)\n    os.close(f)",
                               os.path.join(ledgers, "good@" + uuid)], user=VICTIM, group=VICTIM)
    rcs = {remat("status").returncode for _ in range(60)}
    cutter.kill()
    cutter.wait()
    check.ok(rcs == {0}, "a ledger that is cut short ends nothing", str(rcs))
    holder.communicate("")
    # somebody else's folder, with the name of a user: not believed about that user
    forget(VICTIM)

    def lie():
        os.mkdir(pages, 0o755)
        put(os.path.join(pages, "13"), page(13, command=b"a lie"))
        os.chmod(os.path.join(pages, "13"), 0o666)
    other(lie)
    holder = hold_lock(OTHER, os.path.join(pages, "13"))
    check.ok("a lie" not in remat("status").stdout, "a folder is its owner's, not its name's")
    holder.communicate("")
    forget(VICTIM)


# ---- what another user can do ---------------------------------------------------------------------------------------------------

def C1():
    shared = folder("c1", 0o1777)
    target, mark = os.path.join(shared, "stats.json"), os.path.join(tmp, "c1-ran")
    other(lambda: write(target, "theirs\n", 0o666))
    for option in ("--stats", "--trace-out"):
        p = remat("run", "--limit", "64M", option, target, "--", "touch", mark)
        check.ok(p.returncode == 125 and p.stderr.count("\n") == 1 and "cannot be written: it is another user's" in p.stderr and not os.path.exists(mark),
                 "%s: refused before the program starts" % option, "%d %s" % (p.returncode, p.stderr))


def C2():
    group = ["--group", "pair", "--group-limit", "64M"]
    seen = MEMBER + "\nimport os, subprocess\nprint(str(os.getpid()) in subprocess.run(['/mnt/build/remat', 'status', '--json'], capture_output=True, text=True).stdout)"
    fill = lambda *folders: "; ".join("mount -t tmpfs -o size=4k,mode=1777 tmpfs %s; head -c 4096 /dev/zero >%s/full" % (d, d) for d in folders)
    for folders, options, want in ((EVERYWHERE[:1], group, ["0", "True"]), (EVERYWHERE, ["--limit", "64M"], ["0", "False"]), (EVERYWHERE, group, ["2"])):
        forget(VICTIM)
        p = with_mounts(fill(*folders), ["/mnt/build/remat", "run", *options, "--", PYTHON, "-c", seen], VICTIM)
        if p is None:
            return print("no mounts of one's own here: C2 is left out")
        what = "%s, %s full" % (options[0], " ".join(folders))
        check.ok(p.stdout.split()[:len(want)] == want or (want == ["2"] and p.returncode == 125), what + ": memory, and whether it is shown",
                 "%d %s %s" % (p.returncode, p.stdout, p.stderr))
        if folders != EVERYWHERE:
            check.ok(all(d.startswith("/tmp/") for sort in ("remat", "remat-groups") for d in own_folders(sort, VICTIM) or [""]), "page and ledger lie in the next place")
        elif options == group:
            check.ok("no room for" in p.stderr or "no folder for groups" in p.stderr, what + ": a line says why", p.stderr)
    forget(VICTIM)


def C3():
    job = member(clean_env(), VICTIM)
    is_in(job)
    p = subprocess.run(["cat", "/proc/%d/cmdline" % job.pid], user=OTHER, group=OTHER, extra_groups=[], capture_output=True)
    check.ok(b"cuMemAllocAsync" in p.stdout, "the system shows what runs")
    p = remat("status", "--json", uid=OTHER, cwd="/")
    check.ok(str(job.pid) not in p.stdout, "remat's own pages do not", p.stdout)
    leave_member(job)
    p = subprocess.run([MLP, "--iters", "2", "--batch", "64"], env=clean_env(), user=OTHER, group=OTHER, extra_groups=[], capture_output=True, cwd="/")
    check.ok(p.returncode == 0, "a process without the library uses the device", str(p.stderr))


ALONE = ("F1", "F3", "N4", "N5")


def main():
    global tmp
    if os.environ.get("SAN"):
        print("tried in ordinary builds")
        return 77
    with open(os.path.join(TOP, "docs", "security.md"), encoding="utf-8") as f:
        said = re.findall(r"^- \*\*([TFNC]\d+)\*\* ", f.read(), re.M)
    here = sorted(n for n in globals() if re.fullmatch(r"[TFNC]\d+", n))
    check.ok(sorted(said) == here, "each statement has its test, and the other way about", "%s %s" % (sorted(set(said) ^ set(here)), len(said)))
    is_root = os.getuid() == 0
    probe = subprocess.run([h.REMAT, "--version"], user=VICTIM if is_root else None, capture_output=True, cwd="/")
    if is_root and probe.returncode:
        print("other users cannot reach the build: nothing is tried")
        return 77
    os.umask(0o022)
    tmp = tempfile.mkdtemp(prefix="security-")
    os.chmod(tmp, 0o755)
    only = sys.argv[1:]
    try:
        for name in said:
            if (is_root or name in ALONE) and (not only or name in only):
                began, failed = time.time(), check.failed
                globals()[name]()
                if check.failed > failed or os.environ.get("VERBOSE"):
                    print("%s: %.1f s" % (name, time.time() - began))
    finally:
        if is_root:
            forget(VICTIM)
        shutil.rmtree(tmp, ignore_errors=True)
    return check.end()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
