"""Models under torch.compile: Inductor's kernels, which Triton compiles to PTX. Natively the first iteration's loss and gradients are those of PyTorch on
the processor, in double, within FIRST, and all losses those of eager PyTorch within the model's tolerance; under remat at 75 and 60 % of the compiled run's native
peak they are its bits, the plan is followed, an iteration takes at most PRICE as long (PRICES), and what was learnt of Inductor's kernels is what their PTX says and did
(facts.py).

Later losses tell less than the first: training multiplies what rounding does. Eager ResNet-18 here (a batch of 12, SGD with 0.05), in float and in double, has the
same loss to 2e-9 at first, to 9e-5 in the third iteration and to 9e-3 in the seventh. Nor are eager gradients in float what to compare with: one activation that
float takes for a little more than nothing, and double for a little less, changes gradients by 1e-3; the compiled ones are 3e-6 from double.

    python3 tests/simcuda/models/test_compiled.py [--limits 75,60] [MODEL... | graphs | pieces | count]

`pieces` are small programs that are drawn (pieces.py), for their kernels alone. At the end it says how many kernels were compared in all models, each as it was
run last; `count` says nothing else, and fails where a model has not been run or there are fewer than KERNELS.

Needs `make pytorch` and Triton in $B/compilers (tests/simcuda/pytorch/compilers.sh); without them exits 77. What Inductor made is kept in
$B/pytorch-test/inductor. While it compiles it tries each kernel in several shapes for a tenth of a second of the device's clock each, which is minutes
here: the run that fills the cache has launches of 50 ms, and runs under remat have nothing to try."""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runs import BUSY, MIB, apart, build_dir, run

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'compilers'))
import facts
ITERATIONS, PRICE = 18, 1.3
# Of ResNet-18 at 60 % there is no plan by recomputing alone. With copies, none of which begins before the last op that touches its tensor, plans for the same trace
# take 25 to 36 % more, by what chance the search has and how much of a processor (five runs; 22 to 26 % if copies might begin sooner: remat plan).
PRICES = {('resnet18', 60): 1.45}
FIRST = 3e-6, 3e-5  # loss; each gradient (runs.apart)
# Variables of Inductor's modules (texts of assertions) are the driver's own memory, as code is: no limit counts them, this device does.
VARIABLES = 64 << 10
# Arguments of train.py; how far losses may be from eager PyTorch's (dropout draws other masks when compiled); iterations that follow a plan, at least
MODELS = {
    'mlp': ('mlp --optimizer adagrad --width 256 --depth 8 --batch 3072', 1e-3, 10),
    'step': ('mlp --optimizer adamw --width 256 --depth 8 --batch 3072 --compile-step', 1e-3, 10),
    'gpt': ('gpt --optimizer momentum --batch 16 --depth 2', 1e-3, 10),
    'lengths': ('gpt --optimizer momentum --batch 16 --depth 2 --cut 40', 1e-3, 2),
    'dropout': ('gpt --optimizer sgd --batch 16 --depth 2 --dropout 0.1', 5e-2, 10),
    'resnet18': ('resnet18 --optimizer sgd --batch 12', 1e-1, 10),
}
# cuBLAS's workspace, 8 MiB however small the model, is a sixth of ResNet-18's peak here and has to be there at 96 of its matmuls beside all that is live then:
# at 60 % of that peak less than half of what is live would find room. PyTorch's own setting makes the workspace 128 KiB, in all runs.
SETTINGS = {'resnet18': {'CUBLAS_WORKSPACE_CONFIG': ':16:8'}}
KERNELS = 200  # so many different ones are compared in all models together, at least
# Of pieces.py: seed, iterations, limit (an iteration needs 14.6 MiB; the native peak is of trying shapes), kernels that are compared and iterations that follow a plan, at least
PIECES = ('1', '12', 12 * MIB, 50, 4)


def environment(name):
    b, triton = build_dir(), os.path.join(build_dir(), 'compilers')
    kept = os.path.join(b, 'pytorch-test', 'inductor', name)
    return {'PYTHONPATH': triton, 'TRITON_PTXAS_PATH': os.path.abspath(os.path.join(HERE, '..', '..', 'simgpu', 'ptx', 'ptxas')),
            'TRITON_LIBCUDA_PATH': os.path.join(b, 'simgpu'), 'TRITON_CACHE_DIR': os.path.join(kept, 'triton'),
            'TORCHINDUCTOR_CACHE_DIR': os.path.join(kept, 'inductor'), 'TORCHINDUCTOR_COMPILE_THREADS': '1', 'TRITON_DEFAULT_FP_FUSION': '1', **SETTINGS.get(name, {})}


def furthest(a, b):
    a, b = ([float.fromhex(x) for x in r.losses] for r in (a, b))
    return max(abs(x - y) / abs(x) for x, y in zip(a, b)) if a and len(a) == len(b) else float('inf')


def one(name, limits):
    words, tolerance, followed = MODELS[name]
    eager = [x for x in words.split() if x != '--compile-step'] + ['--iterations', str(ITERATIONS), '--times']
    compiled, env = words.split() + ['--compile', '--iterations', str(ITERATIONS), '--times'], environment(name)
    wrong = []
    file = lambda what: os.path.join(build_dir(), 'pytorch-test', f'compiled_{name}.{what}')
    for f in ('exact', 'native', 'touched', 'kernels'):
        if os.path.exists(file(f)):
            os.remove(file(f))

    def that(ok, what, r):
        if not ok:
            wrong.append(what)
            print(f'FAIL {name}: {what}; see {r.log}', flush=True)

    first = re.sub(r' --cut \d+', '', words.replace(' --compile-step', ''))  # half of one iteration is none: the first would be cut
    exact = run(f'compiled {name} exact', first.split() + ['--iterations', '1', '--times', '--device', 'cpu', '--dtype', 'f64', '--first', file('exact')])
    reference = run(f'compiled {name} eager', eager, env=SETTINGS.get(name))
    filling = run(f'compiled {name} filling', words.split() + ['--compile', '--iterations', '4'], env=dict(env, SIMGPU_LAUNCH_NS='50000000'), timeout=1800)
    native = run(f'compiled {name} native', compiled + ['--first', file('native')], env=dict(env, SIMGPU_TOUCHED=file('touched')))
    for r in (exact, reference, filling, native):
        that(r.code == 0, f'{r.name} ended with {r.code}', r)
    if wrong:
        return len(wrong)
    far = furthest(reference, native)
    that(far <= tolerance, f'losses are {far:.1e} from eager ones', native)
    if 'dropout' not in words:
        loss, gradient, distance = apart(file('exact'), file('native'))
        print(f'{name}: the first loss is {loss:.1e} from that in double, the furthest gradient, of {gradient}, {distance:.1e}', flush=True)
        that(loss <= FIRST[0] and distance <= FIRST[1], f'first iteration: {loss:.1e}, {gradient} {distance:.1e} from that in double', native)
    kernels = set()
    print(f'{name}: native peak {native.peak_bytes / MIB:.1f} MiB (eager {reference.peak_bytes / MIB:.1f}), {native.steady_ns / 1e6:.2f} ms an iteration '
          f'(eager {reference.steady_ns / 1e6:.2f}), losses {far:.1e} from eager ones', flush=True)
    for percent in limits:
        limit = native.peak_bytes * percent // 100
        trace = os.path.join(build_dir(), 'pytorch-test', f'compiled_{name}_{percent}.trace')
        r = run(f'compiled {name} {percent}', compiled, ('--policy', 'plan', '--limit', str(limit), '--trace-out', trace), dict(env, **BUSY))
        price = r.steady_ns / native.steady_ns if native.steady_ns else float('inf')
        print(f'  {percent} %: {r.peak_bytes / MIB:.1f} MiB, {price:.2f} x, plan followed in {r.stats.get("iterations_enforced")} of {r.stats.get("iterations")} '
              f'iterations, {r.stats.get("replays")} replays, {r.stats.get("swaps_steady")} swaps in them', flush=True)
        that(r.code == 0, f'{percent} %: ended with {r.code}', r)
        that(r.same_as(native), f'{percent} %: OTHER RESULTS', r)
        that(0 < r.peak_bytes <= limit + VARIABLES and r.stats.get('peak_physical_bytes', limit + 1) <= limit, f'{percent} %: {r.peak_bytes} of {limit} bytes', r)
        that(r.stats.get('iterations_enforced', 0) >= followed, f'{percent} %: {followed} iterations at least were to follow a plan', r)
        that(r.stats.get('verify_failed') == 0, f'{percent} %: a value that was made again is another one', r)
        that(price <= PRICES.get((name, percent), PRICE), f'{percent} %: {price:.2f} x', r)
        found, compared, others = facts.compare(trace, file('touched'), [env['TRITON_CACHE_DIR'], env['TORCHINDUCTOR_CACHE_DIR']]) if os.path.exists(trace) else ({}, set(), ['no trace'])
        print(f'  what is known of {len(compared)} of Inductor\'s kernels is what their PTX says and did: {facts.said(found)}', flush=True)
        that(compared and not others, f'{percent} %: learnt otherwise than the PTX says: {others}', r)
        kernels |= compared
    with open(file('kernels'), 'w') as out:
        out.writelines(f'{x}\n' for x in sorted(kernels))
    return len(wrong)


def refused():
    """mode='reduce-overhead' records CUDA graphs into pools that PyTorch's stream-ordered allocator lacks: it works natively with PyTorch's own allocator,
    and under remat ends at the first graph, with one line of remat's that says what works."""
    words = 'mlp --width 256 --depth 3 --batch 1536 --optimizer sgd --compile reduce-overhead --iterations 6'.split()
    env = dict(environment('graphs'), SIMGPU_LAUNCH_NS='50000000')
    native = run('compiled graphs native', words, ('--policy=off',), env, timeout=1800)
    r = run('compiled graphs under remat', words, ('--policy', 'plan', '--limit', '30M'), env)
    said = open(r.log, errors='replace').read()
    wrong = [what for ok, what in ((native.code == 0 and len(native.losses) == 6, f'natively it ended with {native.code}; see {native.log}'),
                                   (r.code == 1 and re.search(r'remat\[\d+\]: .*torch.compile\(mode="reduce-overhead"\).*they work with --policy off alone', said), f'under remat it ended with {r.code}; see {r.log}'),
                                   (r.peak_bytes <= 30 * MIB, 'beyond the limit')) if not ok]
    for what in wrong:
        print(f'FAIL graphs: {what}', flush=True)
    return len(wrong)


def pieces():
    """What is learnt of the kernels of programs that are drawn, and their bits under a plan."""
    seed, iterations, limit, least, followed = PIECES
    words, env = [seed, '--iterations', iterations], dict(environment('pieces'), SIMGPU_LAUNCH_NS='50000000')
    touched, trace, kernels = (os.path.join(build_dir(), 'pytorch-test', f'compiled_pieces.{x}') for x in ('touched', 'trace', 'kernels'))
    for f in (touched, trace, kernels):
        if os.path.exists(f):
            os.remove(f)
    native = run('compiled pieces native', words, env=dict(env, SIMGPU_TOUCHED=touched), timeout=1800, script='pieces.py')
    if native.code:
        print(f'FAIL pieces: natively it ended with {native.code}; see {native.log}')
        return 1
    r = run('compiled pieces under remat', words, ('--policy', 'plan', '--limit', str(limit), '--trace-out', trace), env, script='pieces.py')
    found, compared, others = facts.compare(trace, touched, [env['TRITON_CACHE_DIR'], env['TORCHINDUCTOR_CACHE_DIR']]) if os.path.exists(trace) else ({}, set(), ['no trace'])
    enforced = r.stats.get('iterations_enforced', 0)
    print(f'pieces: {r.peak_bytes / MIB:.1f} MiB, plan followed in {enforced} of {r.stats.get("iterations")} iterations\n'
          f'  what is known of {len(compared)} of Inductor\'s kernels is what their PTX says and did: {facts.said(found)}', flush=True)
    wrong = [what for ok, what in ((r.code == 0, f'under remat it ended with {r.code}'), (r.same_as(native), 'OTHER RESULTS'), (0 < r.peak_bytes <= limit + VARIABLES, 'beyond the limit'),
                                   (enforced >= followed, f'{enforced} iterations followed a plan'), (not others, f'learnt otherwise than the PTX says: {others}'),
                                   (len(compared) >= least, f'{len(compared)} kernels compared')) if not ok]
    for what in wrong:
        print(f'FAIL pieces: {what}; see {r.log}', flush=True)
    with open(kernels, 'w') as out:
        out.writelines(f'{x}\n' for x in sorted(compared))
    return len(wrong)


def counted():
    """Says how many kernels of all models, each as it was run last, were compared; whether all models were run, and those are enough."""
    names, models, every = set(), [], [*MODELS, 'pieces']
    for name in every:
        path = os.path.join(build_dir(), 'pytorch-test', f'compiled_{name}.kernels')
        if os.path.exists(path):
            models.append(name)
            with open(path) as f:
                names |= set(f.read().split())
    print(f'{len(names)} different kernels of Inductor\'s were learnt as their PTX says, in {", ".join(models)}')
    return models == every and len(names) >= KERNELS


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--limits', default='75,60')
    p.add_argument('models', nargs='*', default=[*MODELS, 'graphs', 'pieces', 'count'])
    a = p.parse_args()
    if not os.path.exists(os.path.join(build_dir(), 'compilers', '.installed')):
        print('no Triton: bash tests/simcuda/pytorch/compilers.sh build/compilers build/pytorch')
        return 77
    limits = [int(x) for x in a.limits.split(',')]
    others = {'graphs': refused, 'pieces': pieces, 'count': lambda: 0}
    failed = sum(others[m]() if m in others else one(m, limits) for m in a.models)
    enough = counted()
    if 'count' in a.models and not enough:
        failed += 1
        print(f'FAIL count: {KERNELS} at least were to be compared, in all of {", ".join(MODELS)} and pieces')
    print(f'{len([m for m in a.models if m != "count"])} models, {failed} promises broken')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
