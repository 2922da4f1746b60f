'use strict';
/* page.js: what the scripts of a page share: the data, sizes, call sites, the state that an address keeps. */
const D = JSON.parse(document.getElementById('data').textContent);
const USES = D.uses, VARS = ['param', 'state', 'input', 'grad', 'activation', 'workspace'], PHASES = ['forward', 'backward', 'optimizer'];
const PVARS = ['fwd', 'bwd', 'opt'], BWD = 1;
const $ = (id) => document.getElementById(id);
const svgEl = (tag, attrs, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const h = (tag, attrs, ...kids) => {
  const e = document.createElement(tag);
  for (const k in attrs) k.startsWith('on') ? e[k] = attrs[k] : attrs[k] !== undefined && e.setAttribute(k, attrs[k]);
  e.append(...kids);
  return e;
};

/* Three figures in the unit that fits, as page_data.c writes them. */
const MEM = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024], ['B', 1]], TIME = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];
const fitting = (v, table) => table.find((u) => v >= u[1]) || table[table.length - 1];
const figure = (v, table) => { const [unit, size] = fitting(v, table), x = v / size; return x.toFixed(size <= 1 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2) + ' ' + unit; };
const mem = (b) => figure(b, MEM), time = (ns) => figure(ns, TIME);
const nice = (max, n) => { const p = 10 ** Math.floor(Math.log10(max / n)); return p * ([1, 2, 5].find((m) => max / (p * m) <= n + .5) || 10); };
const lower = (a, v) => { let x = 0, y = a.length; while (x < y) { const m = (x + y) >> 1; a[m] < v ? x = m + 1 : y = m; } return x; };

const opName = (op) => D.names[D.ops[op][0]];
const NAME_SHOWN = 90, cut = (name) => name.length > NAME_SHOWN ? name.slice(0, NAME_SHOWN) + '\u2026' : name;
const who = (op) => `op ${op} ${cut(opName(op))}`;
const born = (b) => D.bufs[b][2];

/* The one axis: the program's op i lies at [i, i + 1); replays that run before it share that place with it. Of each schedule: run j lies from x0[j] to
 * x1[j], and kinds[6 j ..] is what the kinds of tensors take while it runs. */
let N = D.ops.length;
for (const l of D.lines) {
  const n = l.run.length;
  l.x0 = new Float64Array(n); l.x1 = new Float64Array(n); l.kinds = new Float64Array(n * USES.length);
  l.first = new Int32Array(D.ops.length).fill(-1);
  l.again = new Map();
  for (let i = 0, from = 0, op = 0; i < n; i++) {
    const r = l.run[i];
    if (r[0]) { if (!l.again.has(r[1])) l.again.set(r[1], []); l.again.get(r[1]).push(i); } else l.first[r[1]] = i;
    if (r[0] && i < n - 1) continue;
    for (let k = from; k <= i; k++) { l.x0[k] = op + (k - from) / (i - from + 1); l.x1[k] = op + (k - from + 1) / (i - from + 1); }
    op++; from = i + 1;
  }
  if (n) N = Math.max(N, Math.ceil(l.x1[n - 1]));
  const now = new Float64Array(USES.length);
  let run = 0;
  for (const e of l.mem) {
    if (e >= 0) { const b = e >> 1; now[D.bufs[b][1]] += e & 1 ? -D.bufs[b][0] : D.bufs[b][0]; continue; }
    const at = run * USES.length;
    let rest = l.run[run++][3]; /* what no tensor accounts for is scratch of a replay */
    for (let k = 0; k < USES.length; k++) { l.kinds[at + k] = now[k]; rest -= now[k]; }
    l.kinds[at + USES.length - 1] += rest;
  }
  l.top = 0;
  l.run.forEach((r, i) => { if (r[3] > l.run[l.top][3]) l.top = i; });
}
N = Math.max(N, 1);
const native = D.lines[0], most = Math.max(...D.lines.map((l) => l.peak), 1);

/* live[b]: 1 where tensor b is in memory while run `run` of schedule l runs. */
function liveAt(l, run) {
  const live = new Uint8Array(D.bufs.length);
  let left = run + 1;
  for (const e of l.mem) if (e < 0) { if (!--left) break; } else live[e >> 1] = e & 1 ? 0 : 1;
  return live;
}

/* Frames of a call site: Python's first, without the lines that stand between a module and its caller in every stack; paths by their end. */
const PYTHON = /^(.*\.py):(\d+)\s*(.*)$/;
const ending = (file) => { const k = file.indexOf('site-packages/'); return k < 0 ? file.split('/').slice(-2).join('/') : file.slice(k + 14); };
const SITES = D.sites.map((site) => {
  const all = site.split(' < ').map((f) => PYTHON.exec(f) || f);
  const lines = all.filter((f) => typeof f !== 'string' && !(/torch\/nn\/modules\/module\.py$/.test(f[1]) && f[3].includes('_call_impl')));
  return { py: lines.map((f) => ({ file: ending(f[1]), line: f[2], name: f[3] })), c: all.filter((f) => typeof f === 'string') };
});
const NOWHERE = { py: [], c: [] };
/* Where an op is from: its own site, or of an op of the backward pass its forward op's. */
function siteOf(op) {
  const tied = op >= 0 ? D.ops[op][4] : -1, from = tied >= 0 && D.ops[tied][3] >= 0 ? tied : op;
  return from >= 0 && D.ops[from][3] >= 0 ? SITES[D.ops[from][3]] : NOWHERE;
}

/* The state that the address keeps after its #, so that a view can be sent on: schedule, run, window, tensor, groups. */
const S = { line: D.lines.length - 1, at: -1, lo: 0, hi: N, ylo: 0, yhi: 1, tensor: -1, tall: 0, by: '', when: 'peak', find: '' };
{
  const said = new URLSearchParams(location.hash.slice(1)), number = (k, lo, hi, or) => { const v = said.has(k) ? Number(said.get(k)) : NaN; return v >= lo && v <= hi ? v : or; };
  S.line = Math.floor(number('line', 0, D.lines.length - 1, S.line));
  S.at = Math.floor(number('run', 0, D.lines[S.line].run.length - 1, S.at));
  if (said.has('op')) S.at = D.lines[S.line].first[Math.floor(number('op', 0, D.ops.length - 1, 0))];
  S.lo = number('from', 0, N, S.lo); S.hi = number('to', 0, N, S.hi);
  if (S.hi <= S.lo) { S.lo = 0; S.hi = N; }
  S.tensor = Math.floor(number('tensor', 0, D.bufs.length - 1, -1));
  S.tall = number('tall', 0, 1, 0);
  S.by = said.get('by') || ''; S.when = said.get('when') === 'here' ? 'here' : 'peak'; S.find = said.get('find') || '';
}
let keeping = 0;
function keep() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const q = new URLSearchParams({ line: S.line, run: S.at });
    if (S.lo > 0 || S.hi < N) { q.set('from', +S.lo.toFixed(2)); q.set('to', +S.hi.toFixed(2)); }
    if (S.tensor >= 0) q.set('tensor', S.tensor);
    if (S.tall) q.set('tall', 1);
    for (const k of ['by', 'find']) if (S[k]) q.set(k, S[k]);
    if (S.when !== 'peak') q.set('when', S.when);
    try { history.replaceState(null, '', '#' + q); } catch (e) { /* a page without an address of its own */ }
  }, 300);
}
const line = () => D.lines[S.line];

/* A choice of one among few, as radio buttons. */
function radios(box, name, list, is, then) {
  box.replaceChildren(...list.map(([value, text]) => {
    const i = h('input', { type: 'radio', name, value });
    i.checked = value === is;
    i.onchange = () => then(value);
    return h('label', {}, i, text);
  }));
}
