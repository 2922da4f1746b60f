#!/usr/bin/env python3
"""What a trace says of Triton's kernels against a reading of their PTX: which parameters are loaded from, stored to, both.

    python3 tests/simcuda/compilers/facts.py TRACE FOLDER...      # folders with .ptx files, looked through with all below

The reading is a flow of addresses through registers, whatever the order of instructions: a register depends on the parameters that it is computed of,
and a load, store or atomic reaches those that its address depends on. A trace has buffers, no parameters: so what is compared is how many of each kind
a launch has. A parameter that is stored to alone may be learnt as read and written: where what is stored is less than the buffer (Inductor puts a small
result into a large buffer that it needs no more), the rest stays as it was; and where one buffer is given for two parameters, what is loaded by one and
stored by the other is read and written (an optimizer's step in place). Launches that a trace calls opaque are not learnt and not compared. Prints one line for
each kernel that differs otherwise, with what both say."""
import collections
import json
import os
import re
import sys

ENTRY = re.compile(r'\.entry\s+([\w$]+)\s*\((.*?)\)[^{]*\{(.*?)\n\}', re.S)
REGISTER = re.compile(r'%[a-z]+\d+')


def reading(body, parameters):
    """{parameter: set of 'load', 'store'}"""
    depends, flows, reached = collections.defaultdict(set), [], collections.defaultdict(set)
    accesses = []
    for line in body.splitlines():
        words = re.sub(r'^(?:[\w$]+:\s*)?(?:@!?%\w+\s+)?', '', line.split('//')[0].strip()).split(None, 1)
        op, rest = (words + ['', ''])[:2]
        if op.startswith('ld.param'):
            name = re.search(r'\[([\w$]+)', rest)
            if name and name.group(1) in parameters:
                for r in REGISTER.findall(rest.split('[')[0]):
                    depends[r].add(name.group(1))
        elif re.match(r'(ld|st|atom|red|cp\.async)\b', op) and ('global' in op or op.startswith('cp.async.c')) or re.match(r'(ld|st)\.(b|u|s|f|v)\d', op):
            places = [m for m in re.findall(r'\[([^\]]*)\]', rest)]
            if places:
                kinds = {'ld': ('load',), 'st': ('store',), 'at': ('load', 'store'), 're': ('load', 'store'), 'cp': ('load',)}[op[:2]]
                accesses.append((REGISTER.findall(places[-1] if op.startswith('cp') else places[0]), kinds))
        elif op and not op.startswith(('ld.', 'st.', '.', 'bar', 'bra', 'ret')):
            found = REGISTER.findall(rest)
            if len(found) > 1:
                flows.append((found[0], found[1:]))
    changed = True
    while changed:
        changed = False
        for to, sources in flows:
            more = set().union(*(depends[s] for s in sources)) - depends[to]
            if more:
                depends[to] |= more
                changed = True
    for registers, kinds in accesses:
        for r in registers:
            for p in depends[r]:
                reached[p].update(kinds)
    return reached


def read_folder(folders):
    """{kernel: set of (loaded only, stored only, both)}, a kernel's texts being of several shapes"""
    out = collections.defaultdict(set)
    for folder in folders:
        for where, _, files in os.walk(folder):
            for f in files:
                if not f.endswith('.ptx'):
                    continue
                with open(os.path.join(where, f)) as text:
                    for name, head, body in ENTRY.findall(text.read()):
                        pointers = [m for m in re.findall(r'\.param\s+\.[bu]64\s+\.ptr\s+\.global[^,]*?([\w$]+)\s*(?:,|$)', head.strip() + ',')]
                        reached = reading(body, set(pointers))
                        kinds = collections.Counter(frozenset(reached[p]) for p in pointers if reached[p])
                        out[name].add((kinds[frozenset({'load'})], kinds[frozenset({'store'})], kinds[frozenset({'load', 'store'})]))
    return out


def compare(trace, folders):
    """(kernels alike, kernels alike but for buffers that are stored to in part or given twice, lines about the others)"""
    read = read_folder(folders)
    with open(trace) as f:
        t = json.load(f)
    seen, alike, partly, lines = collections.defaultdict(set), [], [], []
    for op in t['ops']:
        if op['name'] in read and not op['opaque']:
            seen[op['name']].add((len(op['reads']), len(op['writes']), len(op['rmw']) + len(op['side'])))
    for name, launched in sorted(seen.items()):
        if launched <= read[name]:
            alike.append(name)
        elif all(any(0 <= loads - r <= m - both and w <= stores and w + m == stores + both for loads, stores, both in read[name]) for r, w, m in launched):
            partly.append(name)
        else:
            lines.append(f'{name}: learnt {sorted(launched)}, read {sorted(read[name])} (loaded, stored, both)')
    return alike, partly, lines


def main():
    alike, partly, lines = compare(sys.argv[1], sys.argv[2:])
    for line in lines:
        print(line)
    print(f'{len(alike)} kernels alike, {len(partly)} but for buffers that are stored to in part or given twice, {len(lines)} not')
    return 1 if lines or not alike else 0


if __name__ == '__main__':
    sys.exit(main())
