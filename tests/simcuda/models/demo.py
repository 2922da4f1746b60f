"""make demo-pytorch: PyTorch natively and under remat at 60 % of its native peak, as one table."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runs import MIB, run, run_all

ITERATIONS = 16
MODELS = {
    'GPT': ['gpt'], 'BERT': ['bert', '--optimizer', 'adam'], 'ViT': ['vit', '--optimizer', 'adamw-fused'],
    'ResNet-18': ['resnet18', '--optimizer', 'momentum'], 'U-Net': ['unet', '--optimizer', 'adam'], 'LSTM': ['lstm', '--optimizer', 'sgd'],
}


def main():
    print(f'{"model":<10} {"run":<12} {"peak MiB":>9} {"ms/iteration":>13} {"overhead":>9}  losses')
    bad = 0
    for name, model in MODELS.items():
        train = model + ['--iterations', str(ITERATIONS)]
        native = run(f'demo {name} native', train)
        if native.code or not native.peak_bytes:
            print(f'{name:<10} native run failed: {native.log}', flush=True)
            bad += 1
            continue
        limit = max(native.peak_bytes * 60 // 100, int(native.held_bytes * 1.1))
        base = native.device_ns / ITERATIONS
        print(f'{name:<10} {"native":<12} {native.peak_bytes / MIB:>9.1f} {base / 1e6:>13.2f}')
        for policy, r in zip(('swap', 'plan'), run_all([(run, f'demo {name} {policy}', train, ('--policy', policy, '--limit', str(limit)))
                                                        for policy in ('swap', 'plan')])):
            same = r.code == 0 and r.same_as(native)
            steady = r.stats.get('device_ns_per_iteration') or r.device_ns / ITERATIONS
            print(f'{"":<10} {policy + " 60 %":<12} {r.peak_bytes / MIB:>9.1f} {steady / 1e6:>13.2f} {100 * (steady / base - 1):>8.1f}%  '
                  f'{"identical" if same else "DIFFER: " + r.log}', flush=True)
            bad += not same or r.peak_bytes > limit
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
