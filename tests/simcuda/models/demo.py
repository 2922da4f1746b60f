"""make demo-pytorch; demo.py [MODEL...]: PyTorch natively and under remat at 60 % of its native peak, as one table: the device's high-water
mark, device time of an iteration (events; the median of the last ones), losses and parameters. Without an argument all of SHOWN."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runs import MIB, run, run_all
from test_models import arguments, limit_of

SHOWN = {'GPT': 'gpt', 'BERT': 'bert', 'ViT': 'vit', 'ResNet-18': 'resnet18', 'U-Net': 'unet', 'LSTM': 'lstm'}


def main(shown):
    unknown = [x for x in shown if x not in SHOWN]
    if unknown:
        sys.exit(f'demo.py: no model {unknown[0]!r}: there are {", ".join(SHOWN)}')
    print(f'{"model":<10} {"run":<12} {"peak MiB":>9} {"ms/iteration":>13} {"overhead":>9}  losses')
    bad = 0
    for name in shown:
        train = arguments(SHOWN[name])
        native = run(f'demo {name} native', train)
        if native.code or not native.peak_bytes:
            print(f'{name:<10} native run failed: {native.log}', flush=True)
            bad += 1
            continue
        limit, base = limit_of(native, 60), native.steady_ns
        print(f'{name:<10} {"native":<12} {native.peak_bytes / MIB:>9.1f} {base / 1e6:>13.2f}')
        for policy, r in zip(('swap', 'plan'), run_all([(run, f'demo {name} {policy}', train, ('--policy', policy, '--limit', str(limit)))
                                                        for policy in ('swap', 'plan')])):
            same = r.code == 0 and r.same_as(native)
            steady = r.steady_ns
            print(f'{"":<10} {policy + " 60 %":<12} {r.peak_bytes / MIB:>9.1f} {steady / 1e6:>13.2f} {100 * (steady / base - 1):>8.1f}%  '
                  f'{"identical" if same else "DIFFER: " + r.log}', flush=True)
            bad += not same or r.peak_bytes > limit
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or SHOWN))
