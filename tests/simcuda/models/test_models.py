"""make test-pytorch: training under remat gives the bits that it gives without, within the limit, and at the price promised.

For each model: native, remat without a limit, and remat at 75, 60 and 50 % of the native peak (or 1.1 x what the optimizer holds, where
that is more) with the policies swap and plan; at 60 % also with unkind orders of execution. One line for each promise that is
broken, and 'N passed, M failed' at the end."""
import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runs import MIB, run, run_all

ITERATIONS = 24
MODELS = {
    'gpt': ['gpt', '--optimizer', 'adamw'],
    'gpt-dropout-tied': ['gpt', '--optimizer', 'adamw-fused', '--dropout', '0.1', '--tied', '--clip', '1.0'],
    'gpt-fused': ['gpt-fused', '--optimizer', 'adamw-foreach', '--dropout', '0.1'],
    'gpt-fused-bf16': ['gpt-fused', '--optimizer', 'adamw', '--dtype', 'bf16', '--batch', '64'],
    'bert': ['bert', '--optimizer', 'adam', '--dropout', '0.1'],
    'vit': ['vit', '--optimizer', 'adamw-fused'],
    'llama': ['llama', '--optimizer', 'adamw'],
    'llama-bf16': ['llama', '--optimizer', 'rmsprop', '--dtype', 'bf16', '--batch', '64'],
    'resnet18': ['resnet18', '--optimizer', 'momentum'],
    'unet': ['unet', '--optimizer', 'adam'],
    'lstm': ['lstm', '--optimizer', 'sgd', '--clip', '0.25'],
    'mlp': ['mlp', '--optimizer', 'adagrad'],
    'mlp-bf16': ['mlp', '--optimizer', 'adamw-for', '--dtype', 'bf16', '--batch', '4096'],
}
# A device that runs what may run late as late, and what may run early as early; and orders drawn by chance.
UNKIND = {'chaos': {'SIMGPU_CHAOS': '7'}, 'adversary': {'SIMGPU_CHAOS': 'adversary'}}


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def that(self, ok, what, detail=''):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f'FAIL {what}: {detail}', flush=True)


def limit_of(native, percent):
    return max(native.peak_bytes * percent // 100, int(native.held_bytes * 1.1))


def came_out_the_same(report, r, native, limit=None):
    report.that(r.code == 0, r.name, f'ended with {r.code}; see {r.log}')
    report.that(r.same_as(native), f'{r.name}: losses and checksum as native',
                f'{sum(a == b for a, b in zip(r.losses, native.losses))} of {len(native.losses)} losses are the same; see {r.log}')
    if limit:
        report.that(0 < r.peak_bytes <= limit, f'{r.name}: within the limit', f'{r.peak_bytes} bytes of {limit}')


def plan_was_followed(report, r):
    s = r.stats
    report.that(s.get('iterations_enforced', 0) >= ITERATIONS - 8, f'{r.name}: enforced from the eighth iteration on at the latest',
                f'{s.get("iterations_enforced")} of {s.get("iterations")} iterations')
    report.that(s.get('replays', 0) > 0, f'{r.name}: replays', str(s.get('replays')))
    report.that(s.get('swaps_steady', 0) == 0, f'{r.name}: no swap in a steady iteration', str(s.get('swaps_steady')))
    report.that(s.get('driver_memory_calls_steady', 1) == 0, f'{r.name}: no memory call in a steady iteration',
                str(s.get('driver_memory_calls_steady')))


def one_model(report, name, only_policies, limits):
    train = MODELS[name] + ['--iterations', str(ITERATIONS)]
    native, checkpointed = run_all([(run, f'{name} native', train), (run, f'{name} checkpointed', train + ['--checkpoint'])])
    report.that(native.code == 0 and len(native.losses) == ITERATIONS, f'{name} native', f'ended with {native.code}; see {native.log}')
    if not native.losses or not native.peak_bytes:
        return
    jobs = {'free': (run, f'{name} without a limit', train, ('--policy', 'auto'))}
    for policy in only_policies:
        for percent in limits:
            how = ('--policy', policy, '--limit', str(limit_of(native, percent)))
            jobs[policy, percent] = (run, f'{name} {policy} {percent} %', train, how)
            if percent == 60:
                for kind, env in UNKIND.items():
                    jobs[policy, kind] = (run, f'{name} {policy} {percent} % {kind}', train, how, env)
    price_limit = max(checkpointed.peak_bytes, limit_of(native, 0))
    if 'plan' in only_policies and checkpointed.peak_bytes:
        jobs['price'] = (run, f'{name} plan at the peak of checkpointing', train, ('--policy', 'plan', '--limit', str(price_limit)))
    results = dict(zip(jobs, run_all(list(jobs.values()))))
    per_iteration = native.device_ns / ITERATIONS
    for key, r in results.items():
        percent = key[1] if isinstance(key, tuple) else None
        limit = price_limit if key == 'price' else None if key == 'free' else limit_of(native, percent if percent in limits else 60)
        came_out_the_same(report, r, native, limit)
        if isinstance(key, tuple) and key[0] == 'plan' and percent in limits:
            plan_was_followed(report, r)
            steady = r.stats.get('device_ns_per_iteration', float('inf'))
            if percent == 60:
                report.that(steady <= 1.35 * per_iteration, f'{r.name}: at most 1.35 x native', f'{steady / per_iteration:.2f} x')
        if key == 'price':
            steady = r.stats.get('device_ns_per_iteration', float('inf'))
            report.that(steady < checkpointed.device_ns / ITERATIONS, f'{r.name}: cheaper than torch.utils.checkpoint',
                        f'{steady / per_iteration:.3f} x native, checkpointing {checkpointed.device_ns / native.device_ns:.3f} x')
    print(f'{name}: native peak {native.peak_bytes / MIB:.1f} MiB, {per_iteration / 1e6:.2f} ms; checkpointed '
          f'{checkpointed.peak_bytes / MIB:.1f} MiB, {checkpointed.device_ns / ITERATIONS / 1e6:.2f} ms', flush=True)


def launch_bound(report):
    """A model so small that launching is all: what remat costs a launch, by the wall clock, in turn with native runs."""
    train = ['mlp', '--batch', '8', '--width', '64', '--iterations', '120', '--times', '--optimizer', 'adamw-for']
    ratios = []
    for i in range(3):
        native = run(f'launch-bound native {i}', train)
        free = run(f'launch-bound without a limit {i}', train, ('--policy', 'auto'))
        report.that(free.same_as(native), f'{free.name}: as native', f'see {free.log}')
        if native.seconds and free.seconds:
            ratios.append(statistics.median(free.seconds[60:]) / statistics.median(native.seconds[60:]))
    report.that(bool(ratios) and min(ratios) <= 1.10, 'launch-bound: at most 1.10 x native', f'{ratios}')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--only', default=','.join(MODELS), help='models, with commas')
    p.add_argument('--policies', default='swap,plan')
    p.add_argument('--limits', default='75,60,50')
    a = p.parse_args()
    report = Report()
    for name in a.only.split(','):
        one_model(report, name, [x for x in a.policies.split(',') if x], [int(x) for x in a.limits.split(',') if x])
    if a.only == ','.join(MODELS):
        launch_bound(report)
    print(f'{report.passed} passed, {report.failed} failed')
    return 1 if report.failed or not report.passed else 0


if __name__ == '__main__':
    sys.exit(main())
