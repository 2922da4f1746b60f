"""make test-pytorch: PyTorch shares. Two trainings in one group on one simulated device whose memory they share stay within the group's
limit together, the one with a guarantee comes to it, and both compute what they compute alone; torchrun's two ranks likewise, as
docs/distributed.md has it, each with its own files by %r."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'system')]
from harness import Checks, load
from runs import DEVICE, MIB, build_dir

B = build_dir()
PYTHON = os.path.join(B, 'pytorch', 'bin', 'python')
REMAT = os.path.join(B, 'remat')
TRAIN = os.path.join(HERE, 'train.py')
GPT, MLP = ['gpt', '--optimizer', 'adamw', '--iterations', '14'], ['mlp', '--optimizer', 'sgd', '--iterations', '14']
check = Checks()


class Place:
    """A folder of our own: ledgers, status pages, the shared device."""

    def __init__(self, tmp):
        self.tmp, self.device = tmp, os.path.join(tmp, 'device')
        self.env = dict(os.environ, REMAT_SIMGPU='1', SIMGPU_MEM='1G', XDG_CACHE_HOME=tmp, REMAT_LOG='info', REMAT_GROUP_DIR=os.path.join(tmp, 'groups'),
                        REMAT_STATUS_DIR=os.path.join(tmp, 'status'), SIMGPU_SHARED=self.device, **DEVICE)

    def start(self, name, options, command):
        out, err = (open(os.path.join(self.tmp, name + '.' + e), 'w') for e in ('out', 'err'))
        return subprocess.Popen([REMAT, 'run', *options, '--', *command], env=self.env, cwd=self.tmp, stdout=out, stderr=err)

    def text(self, name):
        with open(os.path.join(self.tmp, name)) as f:
            return f.read()

    def peak(self):
        """The device's high-water mark, of all processes together (tests/simgpu/gpu_shared.c has the layout)."""
        with open(self.device, 'rb') as f:
            return struct.unpack_from('<4Q', f.read(32))[3]

    def fresh(self):
        if os.path.exists(self.device):
            os.unlink(self.device)


def trained(text):
    return [line for line in text.splitlines() if line.startswith(('loss ', 'checksum '))]


def main():
    if not os.path.exists(PYTHON):
        print('no PyTorch: make pytorch')
        return 77
    tmp = tempfile.mkdtemp(prefix='remat-group-')
    try:
        p, native, peak = Place(tmp), {}, {}
        for name, train in (('gpt', GPT), ('mlp', MLP)):
            p.fresh()
            check.ok(p.start('native-' + name, ['--policy', 'off', '--allocator', 'async'], [PYTHON, TRAIN, *train]).wait(1200) == 0, name + ' natively', p.text('native-%s.err' % name))
            native[name], peak[name] = trained(p.text('native-%s.out' % name)), p.peak()
        check.ok(all(len(n) == 15 for n in native.values()), 'fourteen losses and a checksum each')

        # ---- two trainings in one group
        p.fresh()
        limit = (peak['gpt'] + peak['mlp']) * 70 // 100 // (256 << 10) * (256 << 10)
        mine = peak['mlp'] * 60 // 100 // (256 << 10) * (256 << 10)
        group = ['--group', 'lab', '--group-limit', str(limit)]
        jobs = {'gpt': p.start('gpt', [*group, '--stats', 'gpt.json'], [PYTHON, TRAIN, *GPT]),
                'mlp': p.start('mlp', [*group, '--guarantee', str(mine), '--stats', 'mlp.json'], [PYTHON, TRAIN, *MLP])}
        for name, job in jobs.items():
            code = job.wait(3600)
            check.ok(code == 0 and trained(p.text(name + '.out')) == native[name], name + ' in a group: the same numbers', '%d %s' % (code, p.text(name + '.err')[-800:]))
            stats = load(os.path.join(tmp, name + '.json'))
            check.ok(stats.get('peak_physical_bytes', 0) > 0 and stats.get('verify_failed') == 0, name + ': its statistics', str(stats))
        check.ok(limit * 9 // 10 <= p.peak() <= limit, "both together within the group's limit, and up to it", '%d of %d' % (p.peak() / MIB, limit / MIB))
        check.ok(load(os.path.join(tmp, 'mlp.json')).get('peak_physical_bytes', 0) >= mine * 9 // 10, 'the guarantee was had', str(mine / MIB))

        # ---- torchrun: a process a rank, one limit for both, files by rank
        p.fresh()
        limit = 2 * peak['mlp'] * 70 // 100 // (256 << 10) * (256 << 10)
        began = time.monotonic()
        job = p.start('ranks', ['--group', 'ranks', '--group-limit', str(limit), '--stats', 'stats.%r.json'],
                      [PYTHON, '-m', 'torch.distributed.run', '--nproc-per-node', '2', '--log-dir', 'logs', '--redirects', '3', TRAIN, *MLP])
        code = job.wait(3600)
        print('torchrun: %d s' % (time.monotonic() - began))
        check.ok(code == 0, 'torchrun', '%d %s' % (code, p.text('ranks.err')[-800:]))
        ranks = [trained(p.text(os.path.relpath(os.path.join(folder, 'stdout.log'), tmp))) for folder, _, files in sorted(os.walk(os.path.join(tmp, 'logs')))
                 if 'stdout.log' in files]
        check.ok(ranks == [native['mlp']] * 2, 'both ranks: the same numbers', str(ranks))
        for r in '01':
            stats = load(os.path.join(tmp, 'stats.%s.json' % r))
            check.ok(stats.get('launches', 0) > 100, 'rank %s: its statistics' % r, str(stats))
        check.ok(p.peak() <= limit, 'the ranks together within the limit', '%d of %d' % (p.peak() / MIB, limit / MIB))
    finally:
        if not check.failed:
            shutil.rmtree(tmp, ignore_errors=True)
        else:
            print('what they said is in ' + tmp)
    return check.end()


if __name__ == '__main__':
    sys.exit(main())
