"""Other people's training loops ($REMAT_SHARED/clients) under remat on the simulated GPU, by auto and by swap, at 60 % of the native peak.

    clients.py [--all | --drawn N | LOOP...]      default: N = 3, drawn by the commit's hash (TEST_DRAW)

Promised of each: the numbers of a native run, bit for bit; the limit; and that auto costs little more than swapping where it gains nothing. Loops that need
other packages than PyTorch are run where build/clients-site holds these. Logs and what each run printed lie in build/clients."""
import hashlib
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..'))
B = os.environ.get('B') or os.path.join(ROOT, 'build')
CLIENTS = os.path.join(os.environ.get('REMAT_SHARED') or os.path.join(ROOT, '..', 'shared'), 'clients')
SITE = os.path.join(B, 'clients-site')
NEED_SITE = {'bert_fix', 'bert_var', 'gpt2_gc', 'llama_lora', 'lit', 'timm_vit'}
# What each asks of PyTorch has no counterpart under cudaMallocAsync, or takes nine tenths of the limit for what holds (README of the loops).
REFUSED = {'retry', 'history', 'fraction', 'allocator'}
AUTO_MOST = 1.5  # x swap, the whole program: an iteration is learnt once, and 40 to 60 steps are few to win that back in


def loops():
    run = subprocess.run([sys.executable, os.path.join(CLIENTS, 'run.py'), '--list'], capture_output=True, text=True, check=True)
    return [name for name in run.stdout.split() if name not in REFUSED and (name not in NEED_SITE or os.path.isdir(SITE))]


def drawn(names, n):
    lot = lambda name: hashlib.sha256((os.environ.get('TEST_DRAW', '') + ' clients ' + name).encode()).digest()
    return sorted(names, key=lot)[:n]


def wrong(rows):
    """What is broken of one loop: {policy: row of run.py}"""
    out = ['%s: %s' % (policy, what) for policy, row in rows.items() for what in ('identical', 'within') if not row[what]]
    out = ['not ' + what for what in out]
    auto, swap = rows.get('auto', {}).get('total'), rows.get('swap', {}).get('total')
    if auto and swap and auto > swap * AUTO_MOST:
        out.append('auto took %.2f x native, swap %.2f' % (auto, swap))
    return out


def main():
    if not os.path.exists(os.path.join(CLIENTS, 'run.py')):
        print('no loops at', CLIENTS)
        return 77
    asked = [a for a in sys.argv[1:] if not a.startswith('--')]
    names = asked if asked and '--drawn' not in sys.argv else loops() if '--all' in sys.argv else drawn(loops(), int(asked[0]) if asked else 3)
    failed = 0
    for name in names:
        line = [sys.executable, os.path.join(CLIENTS, 'run.py'), '--remat', os.path.join(B, 'remat'), '--python', os.path.join(B, 'pytorch', 'bin', 'python'),
                '--logs', os.path.join(B, 'clients'), *(['--site', SITE] if os.path.isdir(SITE) else []), name]
        run = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
        rows = [json.loads(row) for row in run.stdout.splitlines() if row.startswith('{')]
        print('\n'.join(row for row in run.stdout.splitlines() if not row.startswith('{')), flush=True)
        for what in wrong({row['policy']: row for row in rows}) if rows else ['run.py printed nothing']:
            print('FAIL %s: %s' % (name, what))
            failed += 1
    print('%d loops, %d failed' % (len(names), failed))
    return bool(failed)


if __name__ == '__main__':
    sys.exit(main())
