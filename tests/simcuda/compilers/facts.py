#!/usr/bin/env python3
"""What a trace says of Triton's kernels against what their PTX says and what it did: which buffers are loaded from, stored to, both.

    python3 tests/simcuda/compilers/facts.py TRACE TOUCHED FOLDER...      # folders with .ptx files, looked through with all below

TOUCHED is what the simulated GPU wrote of a native run (SIMGPU_TOUCHED): of each sort of launch, how many bytes of each buffer were loaded before the
launch had stored them, and how many were stored. The reading of the text is a flow of addresses through registers, whatever the order of instructions: a
register depends on the parameters that it is computed of, and a load, store or atomic reaches those that its address depends on.

A trace has buffers, no parameters: a launch is held against one in TOUCHED with buffers of the same sizes. Buffers that are loaded from alone are to be read;
those that are loaded from and stored to are read and written; those that are stored to alone are written where nothing has been in them before, else read and
written, since learning never asks whether stores leave anything of an earlier value. So a kernel is one of these, or wrong:

  alike    learnt is what the text says of each parameter, and each parameter has a buffer of its own
  twice    one buffer is given for two parameters or more (an optimizer's step in place): what is loaded by one and stored by the other is read and written
  in part  learnt as read and written: stores replace a part of an earlier value (Inductor puts a small result into a large buffer that it needs no more)
  anew     learnt as read and written: stores replace all of an earlier value (Inductor gives a later result the memory of one that is over)
  unused   a parameter that the text loads from is not loaded from in these launches, or after the launch itself has stored there

Launches that a trace calls opaque are not learnt and not compared."""
import collections
import hashlib
import json
import os
import re
import sys

ENTRY = re.compile(r'\.entry\s+([\w$]+)\s*\((.*?)\)[^{]*\{(.*?)\n\}', re.S)
REGISTER = re.compile(r'%[a-z]+\d+')
KINDS = ('alike', 'twice', 'in part', 'anew', 'unused')


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
    """{kernel: {hash of a text: [what each parameter, in order, is: a set of 'load', 'store']}}, for one name may have several texts"""
    out = collections.defaultdict(dict)
    for folder in folders:
        for where, _, files in os.walk(folder):
            for f in files:
                if not f.endswith('.ptx'):
                    continue
                with open(os.path.join(where, f)) as text:
                    for name, head, body in ENTRY.findall(text.read()):
                        parameters = [re.search(r'([\w$]+)\s*(?:\[\d+\])?\s*$', x).group(1) for x in head.split(',') if x.strip()]
                        reached = reading(body, set(parameters))
                        out[name][hashlib.sha256((head + body).encode()).hexdigest()[:16]] = [frozenset(reached[p]) for p in parameters]
    return out


def read_touched(path):
    """{kernel: [a sort of launch: [(parameters, bytes, loaded, stored) of each buffer]]}"""
    out = collections.defaultdict(list)
    with open(path) as f:
        for line in f:
            name, *buffers = line.rstrip('\n').split('\t')
            out[name].append([([int(x) for x in b.split()[0].split(',')], *map(int, b.split()[1:])) for b in buffers])
    return out


def kinds_of(learnt, launch, texts):
    """Why a launch that was learnt as `learnt` (sizes of the buffers that are read, written where nothing was, and read and written, each as a Counter; those of
    the last that held something before) is what was done in `launch`, by one of the texts: a set of KINDS; None: it is not."""
    read, written, changed, held = learnt
    sizes = lambda what: collections.Counter(size for _, size, loaded, stored in launch if what(size, loaded, stored))
    both, alone = sizes(lambda size, loaded, stored: loaded and stored), sizes(lambda size, loaded, stored: stored and not loaded)
    over = changed - both  # stored to alone, and learnt as read and written
    if read != sizes(lambda size, loaded, stored: loaded and not stored) or both - changed or written + over != alone or over - held:
        return None
    why, part = set(), sizes(lambda size, loaded, stored: not loaded and 0 < stored < size)
    if over & part:
        why.add('in part')
    if over - part:
        why.add('anew')
    if any(len(p) > 1 for p, _, _, _ in launch):
        why.add('twice')
    for text in texts:
        unused = fits = 0
        for p, _, loaded, stored in launch:
            said = frozenset().union(*(text[i] if i < len(text) else () for i in p))
            did = frozenset(k for k, n in (('load', loaded), ('store', stored)) if n)
            fits += did <= said
            unused += did != said
        if fits == len(launch):
            return why | ({'unused'} if unused else set()) or {'alike'}
    return None


def compare(trace, touched, folders):
    """({kind: [kernel]}, a name for each of them that the same kernel of another program has and no other one, lines about the kernels that are otherwise)"""
    read, did = read_folder(folders), read_touched(touched)
    with open(trace) as f:
        t = json.load(f)
    bytes_of = {b['id']: b['bytes'] for b in t['buffers']}
    holds = {b['id'] for b in t['buffers'] if b['born'] is None or b['born'] < 0}  # buffers that something has been written to
    seen, found, names, lines = collections.defaultdict(list), {k: [] for k in KINDS}, set(), []
    count = lambda ids: collections.Counter(bytes_of[i] for i in ids)
    for op in t['ops']:
        changed = op['rmw'] + op['side']
        if op['name'] in read and op['name'] in did and not op['opaque']:
            learnt = tuple(count(x) for x in (op['reads'], op['writes'], changed, [i for i in changed if i in holds]))
            if any(i in holds for i in op['writes']):
                lines.append(f'{op["name"]}: op {op["id"]} is learnt to write what held something before')
            if learnt not in seen[op['name']]:
                seen[op['name']].append(learnt)
        holds.update(op['writes'], changed)
    for name, launches in sorted(seen.items()):
        why = set()
        for learnt in launches:
            ways = [k for k in (kinds_of(learnt, launch, read[name].values()) for launch in did[name]) if k is not None]
            if not ways:
                lines.append(f'{name}: learnt {[dict(x) for x in learnt]} (sizes: read, written, both, both that held something), did {did[name]} (parameters, bytes, loaded, stored), '
                             f'text {[[sorted(x) for x in v] for v in read[name].values()]}')
                break
            why |= min(ways, key=len)
        else:
            names.add(f'{name}:{min(read[name])}')
            found[next(k for k in ('in part', 'anew', 'twice', 'unused', 'alike') if k in why)].append(name)
    return found, names, lines


def said(found):
    """What compare() found, in words."""
    return ', '.join(f'{len(v)} {k}' for k, v in found.items() if v)


def main():
    found, names, lines = compare(sys.argv[1], sys.argv[2], sys.argv[3:])
    for line in lines:
        print(line)
    print(f'{len(names)} kernels; {said(found)}; {len(lines)} otherwise')
    return 1 if lines or not names else 0


if __name__ == '__main__':
    sys.exit(main())
