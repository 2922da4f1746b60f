"""What the sections share: time budgets, running programs, the device's own view of memory, the result on disk.

Standard library only. One thread besides the main one: the memory poller. Errors: a program that fails, hangs or is
missing is a row of the result, never an exception; only a result that cannot be written raises.
"""
import ctypes
import datetime
import glob
import hashlib
import json
import lzma
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

FORMAT = "remat-gpu-1"
CORE_FLAGS = ",".join("skip_" + part for part in ("nonrelocated_elf_images", "global_memory", "shared_memory", "local_memory", "abort"))


class Budget:
    """Seconds that may be spent, counted from its making."""

    def __init__(self, seconds, within=None):
        self.began = time.monotonic()
        self.deadline = self.began + seconds
        if within:
            self.deadline = min(self.deadline, within.deadline)

    def left(self):
        return max(0.0, self.deadline - time.monotonic())

    def spent(self):
        return time.monotonic() - self.began


class Nvml:
    """Memory in use on device 0 as the driver's management library sees it; `ok` is False where there is none."""

    class _Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        self.ok = False
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        self.handle = ctypes.c_void_p()
        self.ok = self.lib.nvmlInit_v2() == 0 and \
            self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)) == 0

    def memory(self):
        """(used, total) bytes, or (None, None)."""
        m = self._Memory()
        if not self.ok or self.lib.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(m)) != 0:
            return None, None
        return m.used, m.total

    def text(self, call, *args):
        buf = ctypes.create_string_buffer(128)
        return buf.value.decode() if self.ok and getattr(self.lib, call)(*args, buf, 128) == 0 else None


class Poller:
    """Highest device memory in use between start and stop, sampled every few milliseconds, less what was in use
    before."""

    def __init__(self, nvml, period_s=0.004):
        self.nvml, self.period = nvml, period_s
        self.base = nvml.memory()[0]
        self.peak = self.base
        self.samples = 0
        self.stop_flag = threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _loop(self):
        while self.nvml.ok and not self.stop_flag.is_set():
            used = self.nvml.memory()[0]
            if used is not None:
                self.samples += 1
                self.peak = max(self.peak or 0, used)
            self.stop_flag.wait(self.period)

    def stop(self):
        self.stop_flag.set()
        self.thread.join()
        return None if self.base is None else self.peak - self.base


class Run:
    """One program that was run: rc (None: it was stopped), timed_out, wall_s, out, err, device_peak_bytes."""

    def __init__(self):
        self.rc, self.timed_out, self.wall_s = None, False, 0.0
        self.out, self.err, self.device_peak_bytes = "", "", None

    def status(self):
        if self.timed_out:
            return "timed out"
        if self.rc is None:
            return "could not start"
        if self.rc < 0:
            return "killed by " + signal.Signals(-self.rc).name
        return "ok" if self.rc == 0 else f"exit {self.rc}"

    def tail(self, n=600):
        return self.err[-n:]

    def messages(self):
        """remat's own lines, without the process number."""
        return [re.sub(r"^remat\[\d+\]: *", "", line) for line in self.err.splitlines() if line.startswith("remat[")]


class Suite:
    """The run as a whole: where things are, what there is, how much time, and the result."""

    def __init__(self, args):
        self.args = args
        self.here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.dist = os.path.abspath(args.dist)
        self.simulated = args.selftest
        self.budget = Budget(args.budget)
        self.nvml = Nvml() if not self.simulated else _NoNvml()
        self.work = tempfile.mkdtemp(prefix="remat-gpu-")
        self.logs = os.path.join(self.work, "logs")
        self.traces = os.path.join(self.work, "traces")
        os.makedirs(self.logs)
        os.makedirs(self.traces)
        self.remat = os.path.join(self.dist, "remat")
        self.python = args.python or sys.executable
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M")
        self.result = {"format": FORMAT, "commit": self._commit(), "simulated": self.simulated, "started": stamp,
                       "seconds": 0, "budget_s": args.budget, "machine": self._machine()}
        gpu = re.sub(r"[^A-Za-z0-9]+", "-", self.result["machine"]["gpu"] or "none").strip("-").lower()
        if args.out.endswith(".json"):
            self.json_path = os.path.abspath(args.out)
        else:
            self.json_path = os.path.join(os.path.abspath(args.out), f"{gpu}-{stamp}.json")
        os.makedirs(os.path.dirname(self.json_path), exist_ok=True)
        self.before = {}
        if args.resume:
            with open(args.resume) as f:
                self.before = json.load(f)

    # ---- what there is ---------------------------------------------------------------------------------------

    def _commit(self):
        try:
            with open(os.path.join(self.dist, "COMMIT")) as f:
                return f.read().strip()
        except OSError:
            return "unknown"

    def _machine(self):
        m = {"gpu": None, "driver": None, "memory_bytes": None, "python": platform.python_version(),
             "kernel": platform.release(), "cores": os.cpu_count(), "cpu": None}
        try:
            with open("/proc/cpuinfo") as f:
                m["cpu"] = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), None)
        except OSError:
            pass
        if self.simulated:
            m["gpu"] = "simulated"
        elif self.nvml.ok:
            m["gpu"] = self.nvml.text("nvmlDeviceGetName", self.nvml.handle)
            m["driver"] = self.nvml.text("nvmlSystemGetDriverVersion")
            m["memory_bytes"] = self.nvml.memory()[1]
        import importlib.metadata
        for package in ("torch", "torchvision", "transformers", "timm", "triton"):
            try:
                m[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                m[package] = None
        return m

    def cublas(self):
        """The cuBLAS that PyTorch ships, or None."""
        for base in sys.path:
            for pattern in ("nvidia/cu*/lib/libcublas.so.*", "nvidia/cublas/lib/libcublas.so.*"):
                found = sorted(glob.glob(os.path.join(base, pattern)))
                if found:
                    return found[-1]
        return None

    # ---- running ---------------------------------------------------------------------------------------------

    def _simulated(self, argv):
        """On the simulated device Python's own libraries stand behind its runtime and BLAS, which `remat run` preloads, also
        with the policy off: that is what native means there."""
        if self.python not in argv:
            return argv
        at = argv.index(self.python)
        argv = argv[:at + 1] + [os.path.join(self.here, "suite", "no_cudnn.py")] + argv[at + 1:]
        return argv if argv[0] == self.remat else [self.remat, "run", "--policy", "off", "--"] + argv

    def run(self, name, argv, timeout, env=None, cwd=None):
        """Runs argv for at most `timeout` seconds, its output kept as logs/NAME.{out,err}. The whole process group is
        ended when the time is out. While it runs, device memory is polled."""
        r = Run()
        full = dict(os.environ, PYTHONUNBUFFERED="1", **(env or {}))
        sim_stats = os.path.join(self.work, "simgpu.json")
        if self.simulated:
            simgpu = os.path.abspath(self.args.simgpu)
            full.update(LD_LIBRARY_PATH=simgpu, REMAT_SIMGPU="1", SIMGPU_STATS=sim_stats)
            argv = self._simulated(argv)
            if os.path.exists(sim_stats):
                os.unlink(sim_stats)
        base = os.path.join(self.logs, re.sub(r"[^A-Za-z0-9._-]+", "-", name))
        poller = Poller(self.nvml)
        began = time.monotonic()
        try:
            with open(base + ".out", "wb") as out, open(base + ".err", "wb") as err:
                p = subprocess.Popen(argv, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=full, cwd=cwd,
                                     start_new_session=True)
                try:
                    r.rc = p.wait(max(0.5, timeout))
                except subprocess.TimeoutExpired:
                    r.timed_out = True
                    for sig, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
                        try:
                            os.killpg(p.pid, sig)
                            p.wait(patience)
                            break
                        except (ProcessLookupError, subprocess.TimeoutExpired):
                            continue
        except OSError as e:
            with open(base + ".err", "a") as err:
                err.write(f"{argv[0]}: {e}\n")
        r.wall_s = time.monotonic() - began
        r.device_peak_bytes = poller.stop()
        for attr, suffix in (("out", ".out"), ("err", ".err")):
            with open(base + suffix, "rb") as f:
                setattr(r, attr, f.read().decode(errors="replace"))
        if self.simulated:
            doc = read_json(sim_stats)
            r.device_peak_bytes = doc.get("peak_physical_bytes") if doc else None
        return r

    def remat_run(self, name, argv, timeout, limit=None, policy=None, trace_out=None, cache=None):
        """argv under `remat run`. Its cache is the folder `cache`, or one of its own, so that nothing learnt before
        helps. Returns (Run, the statistics object or None)."""
        stats = os.path.join(self.work, "stats.json")
        if os.path.exists(stats):
            os.unlink(stats)
        own = None if cache else tempfile.mkdtemp(prefix="cache-", dir=self.work)
        cmd = [self.remat, "run", "--stats", stats]
        if limit:
            cmd += ["--limit", str(int(limit))]
        if policy:
            cmd += ["--policy", policy]
        if trace_out:
            cmd += ["--trace-out", trace_out]
        env = {"REMAT_CACHE": cache or own, "REMAT_LOG": os.environ.get("REMAT_LOG", "info")}
        core = os.path.join(self.work, "core")
        if not self.simulated: # a kernel that faults leaves its name, and little else
            env.update(CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=core, CUDA_COREDUMP_GENERATION_FLAGS=CORE_FLAGS)
        r = self.run(name, cmd + ["--"] + argv, timeout, env=env)
        if os.path.exists(core):
            self.note_core(name, core)
        if own:
            shutil.rmtree(own, ignore_errors=True)
        return r, read_json(stats)

    def note_core(self, name, core):
        """Which kernel faulted and where, as logs/NAME.core.txt."""
        with open(os.path.join(self.logs, re.sub(r"[^A-Za-z0-9._-]+", "-", name) + ".core.txt"), "wb") as out:
            try:
                subprocess.run(["cuda-gdb", "-batch", "-ex", "target cudacore " + core, "-ex", "info cuda kernels", "-ex", "x/2i $errorpc-16"],
                               stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=30)
            except (OSError, subprocess.TimeoutExpired) as e:
                out.write(f"{e}\n".encode())
        os.unlink(core)

    # ---- the result ------------------------------------------------------------------------------------------

    def save(self):
        """Writes the result as it stands; the file is never half written."""
        self.result["seconds"] = round(self.budget.spent(), 1)
        tmp = self.json_path + ".tmp"
        with open(tmp, "w") as f:
            json.dump(self.result, f, indent=1)
            f.write("\n")
        os.replace(tmp, self.json_path)

    def keep_trace(self, path, name):
        """Compresses a trace the program wrote into the traces folder; returns its row, or None when there is none."""
        doc = read_json(path)
        if not doc or "ops" not in doc:
            return None
        with open(path, "rb") as f:
            raw = f.read()
        file = re.sub(r"[^A-Za-z0-9._-]+", "-", name) + ".json.xz"
        with lzma.open(os.path.join(self.traces, file), "wb", preset=6) as f:
            f.write(raw)
        row = {"file": file, "of": name, "sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw),
               "ops": len(doc["ops"]), "buffers": len(doc["buffers"]), "peak_bytes": doc["meta"].get("peak_bytes"),
               "total_ns": doc["meta"].get("total_ns"),
               "opaque": sum(1 for o in doc["ops"] if o.get("opaque"))}
        section = self.result.setdefault("traces", {"files": []})
        section["files"] = [f for f in section["files"] if f["of"] != name] + [row]
        note_opaque(self.result, name, doc)
        return row


class _NoNvml:
    ok = False

    def memory(self):
        return None, None

    def text(self, *_):
        return None


def note_opaque(result, name, trace):
    """Adds a trace's opaque ops to the list of what goes wrong: by name, how many, how much of the time, why."""
    wrong = result.setdefault("wrong", {"opaque": {}, "messages": {}})
    for o in trace["ops"]:
        if not o.get("opaque"):
            continue
        row = wrong["opaque"].setdefault(o["name"], {"ops": 0, "ns": 0, "in": [], "why": []})
        row["ops"] += 1
        row["ns"] += o.get("ns", 0)
        if name not in row["in"]:
            row["in"].append(name)
        why = o.get("why_opaque")
        if why and why not in row["why"]:
            row["why"].append(why)


def note_messages(result, name, messages):
    """Adds remat's own lines; numbers in them are folded, so that one complaint is one line."""
    wrong = result.setdefault("wrong", {"opaque": {}, "messages": {}})
    for line in messages:
        row = wrong["messages"].setdefault(re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", line), {"count": 0, "first": line,
                                                                                        "in": []})
        row["count"] += 1
        if name not in row["in"]:
            row["in"].append(name)


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def median(values):
    v = sorted(values)
    n = len(v)
    return None if not n else v[n // 2] if n % 2 else (v[n // 2 - 1] + v[n // 2]) / 2
