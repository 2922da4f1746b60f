"""Runs models/train.py natively or under remat on the simulated device, and reads back what came out.

The device is scaled down so that small models take the time of large ones: arithmetic, memory and host bandwidth in the
proportions of a real card, and pages of 64 KiB: a limit of 28 MiB is some 450 of them, where one of 12 GiB is 6,000 pages of 2 MiB. With
larger ones what pages waste would cost these small models more than the recomputation does."""
import array
import concurrent.futures
import dataclasses
import json
import math
import os
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = {'SIMGPU_FLOPS': '2e12', 'SIMGPU_BW': '150e9', 'SIMGPU_HOST_BW': '2.5e9', 'SIMGPU_GRANULARITY': '64K'}
BUSY = {'REMAT_PLAN_CLOCK': 'busy'}  # planners get their seconds of a processor, whatever else has them
MIB = 1 << 20
STEADY = 9  # so many iterations at the end are steady ones, if any are


@dataclasses.dataclass
class Result:
    name: str
    code: int
    log: str           # where everything that it printed lies
    losses: list
    checksum: str
    held_bytes: int
    seconds: list      # wall time of each iteration, with --times
    peak_bytes: int    # the device's high-water mark
    device_ns: int     # in all
    steady_ns: float   # device time of an iteration: the median of the last ones, with --times
    stats: dict        # what remat said with --stats

    def same_as(self, other):
        return bool(self.losses) and self.losses == other.losses and self.checksum == other.checksum


def build_dir():
    return os.path.abspath(os.environ.get('B', 'build'))


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def run(name, train, remat=('--policy', 'off'), env=None, timeout=600, script='train.py'):
    """One run; train: arguments of the script, remat: arguments of `remat run`."""
    b = build_dir()
    out = os.path.join(b, 'pytorch-test', re.sub(r'[^\w.-]+', '_', name))
    os.makedirs(os.path.dirname(out), exist_ok=True)
    files = {k: f'{out}.{k}' for k in ('log', 'device', 'stats')}
    for f in files.values():
        if os.path.exists(f):
            os.remove(f)
    command = [os.path.join(b, 'remat'), 'run', *remat]
    if tuple(remat) == ('--policy', 'off'):
        command += ['--allocator', 'async']  # without a cache: what is on the device is what the program holds
    else:
        command += ['--stats', files['stats']]
    command += ['--', os.path.join(b, 'pytorch', 'bin', 'python'), os.path.join(HERE, script), *train]
    full = dict({'REMAT_CACHE': 'off'}, **os.environ) | dict(DEVICE, REMAT_SIMGPU='1', SIMGPU_STATS=files['device'])  # earlier runs say nothing here
    full.update(env or {})
    with open(files['log'], 'w') as log:
        log.write(' '.join(f'{k}={v}' for k, v in dict(DEVICE, REMAT_SIMGPU='1', **(env or {})).items()) + ' ' + ' '.join(command) + '\n')
        log.flush()
        try:
            code = subprocess.run(command, env=full, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            code = -1
            log.write(f'stopped after {timeout} s\n')
    text = open(files['log'], errors='replace').read()
    device = read_json(files['device'])
    found = lambda what: re.findall(what, text, re.M)
    between = [int(x) for x in (found(r'^device_ns (.*)') or [''])[0].split()]
    return Result(name, code, files['log'], found(r'^loss \d+ (\S+)'), (found(r'^checksum (\S+)') or [''])[0],
                  int((found(r'^held (\d+)') or [0])[0]), [float(s) for s in found(r'^loss .* ([\d.]+) s$')],
                  int(device.get('peak_physical_bytes', 0)), int(device.get('device_ns', 0)),
                  statistics.median(between[-STEADY:]) if between else 0.0, read_json(files['stats']))


def first(path):
    """(loss, {parameter: its gradient}) of the first iteration, as train.py --first has written them."""
    with open(path, 'rb') as f:
        head, grads = json.loads(f.readline()), {}
        for name, n in head['gradients']:
            grads[name] = array.array('f', f.read(4 * n))
    return float.fromhex(head['loss']), grads


def apart(a, b):
    """How far two such files are from each other: (of the losses, the furthest gradient and how far it is), relative; a gradient's distance is in the
    Euclidean norm, of its own length or, where it is next to nothing (a bias that the loss does not depend on), of a thousandth of all of them."""
    (loss_a, grads_a), (loss_b, grads_b) = first(a), first(b)
    if {k: len(v) for k, v in grads_a.items()} != {k: len(v) for k, v in grads_b.items()}:
        return float('inf'), 'other parameters', float('inf')
    length = {k: math.sqrt(math.fsum(x * x for x in v)) for k, v in grads_a.items()}
    least = 1e-3 * math.sqrt(math.fsum(x * x for x in length.values()))
    far = {k: math.dist(v, grads_b[k]) / max(length[k], least) for k, v in grads_a.items()}
    worst = max(far, key=lambda k: far[k] if far[k] == far[k] else math.inf)
    return abs(loss_a - loss_b) / abs(loss_a), worst, far[worst]


def run_all(jobs, workers=None):
    """[(function, args...)] in parallel, results in order."""
    with concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return [f.result() for f in [pool.submit(*j) for j in jobs]]
