'use strict';
(() => {
const D = JSON.parse(document.getElementById('data').textContent);
const USES = D.uses, VARS = ['param', 'state', 'input', 'grad', 'activation', 'workspace'], PHASES = ['forward', 'backward', 'optimizer'];
const PVARS = ['fwd', 'bwd', 'opt'];
const $ = (id) => document.getElementById(id);
const NS = 'http://www.w3.org/2000/svg';
const el = (tag, attrs, text) => { const e = document.createElementNS(NS, tag); for (const k in attrs) e.setAttribute(k, attrs[k]); if (text !== undefined) e.textContent = text; return e; };
const h = (tag, attrs, ...kids) => { const e = document.createElement(tag); for (const k in attrs) k === 'onclick' ? e.onclick = attrs[k] : e.setAttribute(k, attrs[k]); e.append(...kids); return e; };

/* One unit for all memory of the page, one for all time, chosen by what is largest. */
const most = Math.max(...D.lines.map((l) => l.peak), 1), long = Math.max(...D.lines.map((l) => l.ns), 1);
const pick = (v, table) => table.find((u) => v >= u[1]) || table[table.length - 1];
const [UNIT, SIZE] = pick(most, [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024], ['B', 1]]);
const [TUNIT, TICK] = pick(long, [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]]);
const mem = (b) => { const v = b / SIZE; return v.toFixed(v >= 100 ? 0 : v >= 10 ? 1 : 2) + ' ' + UNIT; };
const time = (ns) => { const v = ns / TICK; return v.toFixed(v >= 100 ? 1 : v >= 10 ? 2 : 3) + ' ' + TUNIT; };

/* Steps that run: i-th runs from t[i] - dur to t[i]. */
for (const l of D.lines) {
  l.end = l.run.map((r) => r[2]);
  l.start = l.run.map((r) => r[2] - D.ops[r[1]][2]);
  l.first = new Map();
  l.run.forEach((r, i) => { if (!r[0] && !l.first.has(r[1])) l.first.set(r[1], i); });
}
const native = D.lines[0];
let cur = D.lines.length - 1, at = 0, lo = 0, hi = 1;
const line = () => D.lines[cur];
const span = () => long * 1.0;

const nice = (max, n) => { const p = 10 ** Math.floor(Math.log10(max / n)); return p * [1, 2, 5, 10].find((m) => max / (p * m) <= n + .5); };
const lower = (a, v) => { let x = 0, y = a.length; while (x < y) { const m = (x + y) >> 1; a[m] < v ? x = m + 1 : y = m; } return x; };

const hue = (n) => `hsl(${(250 + n * 47) % 360} 65% 58%)`;
let geo = null;
function draw() {
  const box = $('chart'), W = Math.max(box.clientWidth, 280), narrow = W < 560, H = narrow ? 270 : 360, L = 46, R = 8, T = 10, B = 92;
  const l = line(), x0 = lo * span(), x1 = hi * span(), w = W - L - R, hh = H - T - B;
  const X = (t) => L + (t - x0) / (x1 - x0) * w, Y = (b) => T + hh - b / (most * 1.06) * hh;
  geo = { X, W, L, w, x0, x1, T, hh };
  const svg = el('svg', { viewBox: `0 0 ${W} ${H}`, height: H, role: 'img', 'aria-label': `memory over one iteration: ${l.name}, against ${native.name}` });
  const clip = el('clipPath', { id: 'clip' }); clip.append(el('rect', { x: L, y: T - 4, width: w, height: H - T })); svg.append(clip);
  const ys = nice(most * 1.06 / SIZE, 5);
  for (let v = 0; v <= most * 1.06 / SIZE; v += ys) {
    svg.append(el('line', { class: 'grid', x1: L, x2: L + w, y1: Y(v * SIZE), y2: Y(v * SIZE) }));
    svg.append(el('text', { x: L - 6, y: Y(v * SIZE) + 4, 'text-anchor': 'end' }, +v.toPrecision(6)));
  }
  svg.append(el('text', { x: L + 4, y: T + 10, class: 'in' }, UNIT));
  const g = el('g', { 'clip-path': 'url(#clip)' }); svg.append(g);
  /* stacked areas, from the bottom up */
  const a = Math.max(0, lower(l.end, x0) - 1), b = Math.min(l.run.length - 1, lower(l.end, x1) + 1);
  const base = new Float64Array(l.run.length);
  USES.forEach((name, k) => {
    let d = '', back = '', any = false, px = -9;
    for (let i = a; i <= b; i++) {
      const top = base[i] + l.run[i][4 + k], s = X(l.start[i]), e = X(l.end[i]);
      any = any || l.run[i][4 + k] > 0;
      d += (d ? 'L' : 'M') + s.toFixed(1) + ' ' + Y(top).toFixed(1) + 'H' + e.toFixed(1);
      back = 'L' + e.toFixed(1) + ' ' + Y(base[i]).toFixed(1) + 'H' + s.toFixed(1) + back;
      base[i] = top;
    }
    if (any) g.append(el('path', { d: d + back + 'Z', style: `fill:var(--${VARS[k]})` }));
  });
  /* the other schedules as lines over it */
  D.lines.forEach((o, n) => {
    if (n === cur) return;
    let d = '', y = NaN;
    const c = Math.max(0, lower(o.end, x0) - 1), e = Math.min(o.run.length - 1, lower(o.end, x1) + 1);
    for (let i = c; i <= e; i++) {
      const yy = Y(o.run[i][3]);
      d += (d ? (Math.abs(yy - y) > .05 ? 'V' + yy.toFixed(1) : '') : 'M' + X(o.start[i]).toFixed(1) + ' ' + yy.toFixed(1)) + 'H' + X(o.end[i]).toFixed(1);
      y = yy;
    }
    g.append(el('path', { d, fill: 'none', 'stroke-width': n ? 1.3 : 1.8, style: `stroke:${n ? hue(n) : 'var(--native)'}` }));
  });
  if (l.limit > 0 && l.limit <= most * 1.06) {
    g.append(el('line', { x1: L, x2: L + w, y1: Y(l.limit), y2: Y(l.limit), 'stroke-width': 1.6, 'stroke-dasharray': '6 4', style: 'stroke:var(--limit)' }));
    svg.append(el('text', { x: L + w - 4, y: Y(l.limit) - 5, 'text-anchor': 'end', style: 'fill:var(--limit)' }, 'limit ' + mem(l.limit)));
  }
  /* bands of the phases, then lanes: replays, evictions, copies */
  const yb = T + hh + 4, lane = (n) => yb + 20 + n * 13;
  for (let i = a; i <= b;) {
    let j = i; const p = D.ops[l.run[i][1]][1];
    while (j < b && (l.run[j + 1][0] || D.ops[l.run[j + 1][1]][1] === p)) j++;
    const xa = Math.max(X(l.start[i]), L), xb = Math.min(X(l.end[j]), L + w);
    g.append(el('rect', { x: xa, y: yb, width: Math.max(xb - xa, .6), height: 15, style: `fill:var(--${PVARS[p]})` }));
    if (xb - xa > 58) svg.append(el('text', { class: 'in', x: (xa + xb) / 2, y: yb + 11.5, 'text-anchor': 'middle' }, PHASES[p]));
    i = j + 1;
  }
  l.run.forEach((r, i) => { if (r[0] && i >= a && i <= b) g.append(el('rect', { x: X(l.start[i]), y: lane(0), width: Math.max(X(l.end[i]) - X(l.start[i]), 1.2), height: 10, style: 'fill:var(--replay)' })); });
  for (const e of l.drops) if (e[1] >= x0 && e[1] <= x1) g.append(el('rect', { x: X(e[1]) - .6, y: lane(1), width: 1.2, height: 10, style: 'fill:var(--evict)' }));
  for (const c of l.copies) if (c[2] >= x0 && c[1] <= x1) g.append(el('rect', { x: X(c[1]), y: lane(2) + (c[3] ? 0 : 5.5), width: Math.max(X(c[2]) - X(c[1]), 1.2), height: 4.5, style: 'fill:var(--copy)' }));
  if (cur) ['replay', 'drop', l.copies.length ? 'copy' : ''].forEach((n, k) => svg.append(el('text', { x: L - 6, y: lane(k) + 9, 'text-anchor': 'end', style: 'font-size:11px' }, n)));
  const xs = nice((x1 - x0) / TICK, narrow ? 4 : 8);
  for (let v = Math.ceil(x0 / TICK / xs) * xs; v * TICK <= x1; v += xs) svg.append(el('text', { x: X(v * TICK), y: lane(3) + 12, 'text-anchor': 'middle' }, +v.toPrecision(6)));
  svg.append(el('text', { x: L - 6, y: lane(3) + 12, 'text-anchor': 'end' }, TUNIT));
  g.append(el('line', { id: 'cursor', y1: T, y2: lane(3), 'stroke-width': 1.4, style: 'stroke:var(--accent)' }));
  g.append(el('line', { id: 'origin', y1: T, y2: lane(3), 'stroke-width': 1.4, 'stroke-dasharray': '2 3', style: 'stroke:var(--replay)' }));
  box.replaceChildren(svg);
  read();
}

/* Frames of a call site as the tables have them: Python's first, without the lines between modules; paths by their end. */
const PYTHON = /^(.*\.py):(\d+)\s*(.*)$/;
const ending = (file) => { const k = file.indexOf('site-packages/'); return k < 0 ? file.split('/').slice(-2).join('/') : file.slice(k + 14); };
function frames(site) {
  const all = site.split(' < ').map((f) => PYTHON.exec(f) || f);
  const lines = all.filter((f) => f.index === 0 && !(/torch\/nn\/modules\/module\.py$/.test(f[1]) && f[3].includes('_call_impl')));
  return [...lines.map((f) => `${ending(f[1])}:${f[2]} ${f[3]}`), ...all.filter((f) => typeof f === 'string')];
}
const who = (op) => `op ${op} ${D.ops[op][0]}`;
function read() {
  const l = line(), out = $('read');
  if (!l.run.length) return out.replaceChildren('nothing runs');
  at = Math.max(0, Math.min(at, l.run.length - 1));
  const r = l.run[at], op = r[1], mid = (l.start[at] + l.end[at]) / 2, c = $('cursor'), o = $('origin');
  c.setAttribute('x1', geo.X(mid)); c.setAttribute('x2', geo.X(mid));
  o.style.display = 'none';
  const top = h('div', {}, h('b', {}, time(l.start[at])), `, ${r[0] ? 'replay of ' : ''}${who(op)} (${PHASES[D.ops[op][1]]}, ${time(D.ops[op][2])}): `, h('b', {}, mem(r[3])));
  if (r[0]) {
    const from = l.first.get(op), x = geo.X((l.start[from] + l.end[from]) / 2);
    o.style.display = ''; o.setAttribute('x1', x); o.setAttribute('x2', x);
    top.append('; first ran at ', h('button', { class: 'link', onclick: () => go(from) }, time(l.start[from])));
  } else {
    const again = l.run.map((q, i) => q[0] && q[1] === op ? i : -1).filter((i) => i >= 0);
    if (again.length) top.append('; run again at ', ...again.slice(0, 4).flatMap((i, k) => [k ? ', ' : '', h('button', { class: 'link', onclick: () => go(i) }, time(l.start[i]))]));
    if (cur) top.append(`; ${native.name}: ${mem(native.run[native.first.get(op)][3])}`);
  }
  const gone = l.drops.filter((e) => e[2] === at), out_ = h('div', {}, ...gone.slice(0, 4).flatMap((e, k) => [k ? '; ' : 'evicted before it: ', `buffer ${e[0]}, ${mem(e[3])}, `,
    ...e[4] < 0 ? ['from before the iteration'] : ['made by ', h('button', { class: 'link', onclick: () => go(l.first.get(e[4])) }, `op ${e[4]}`)],
    ...e[5] < 0 ? [] : [', rebuilt at ', h('button', { class: 'link', onclick: () => go(e[5]) }, time(l.start[e[5]]))]]), gone.length > 4 ? `; and ${gone.length - 4} more` : '');
  const kinds = h('div', { class: 'kinds' }, ...USES.map((n, k) => r[4 + k] ? h('span', {}, `${n} ${mem(r[4 + k])}`) : ''));
  const site = D.ops[op][3] >= 0 ? h('div', { class: 'kinds' }, 'from ' + frames(D.sites[D.ops[op][3]]).join(' \u2039 ')) : '';
  out.replaceChildren(top, kinds, out_, site);
}
function go(i) {
  const l = line();
  at = Math.max(0, Math.min(i, l.run.length - 1));
  const m = (l.start[at] + l.end[at]) / 2 / span();
  if (m < lo || m > hi) { const w = hi - lo; lo = Math.max(0, Math.min(1 - w, m - w / 2)); hi = lo + w; draw(); } else read();
}
function zoom(f, center) {
  const w = Math.min(1, Math.max((hi - lo) * f, 1e-4)), c = center === undefined ? (line().start[at] || 0) / span() : center, k = (c - lo) / (hi - lo);
  lo = Math.max(0, Math.min(1 - w, c - w * Math.max(0, Math.min(1, k)))); hi = lo + w; draw();
}
const next = (d, ok) => { const l = line(); for (let i = at + d; i >= 0 && i < l.run.length; i += d) if (ok(l, i)) return go(i); };
const dropped = (l, i) => l.drops.some((e) => e[2] === i);
const keys = {
  ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), PageDown: () => go(at + 20), PageUp: () => go(at - 20), Home: () => go(0), End: () => go(1e9),
  '+': () => zoom(.5), '=': () => zoom(.5), '-': () => zoom(2), 0: () => { lo = 0; hi = 1; draw(); },
  r: () => next(1, (l, i) => l.run[i][0]), R: () => next(-1, (l, i) => l.run[i][0]), d: () => next(1, dropped), D: () => next(-1, dropped),
  o: () => { const r = line().run[at]; if (r && r[0]) go(line().first.get(r[1])); },
  p: () => { const l = line(); let b = 0; l.run.forEach((r, i) => { if (r[3] > l.run[b][3]) b = i; }); go(b); },
};
function start() {
  const bar = $('pick');
  D.lines.forEach((l, n) => { const i = h('input', { type: 'radio', name: 'line', value: n }); i.checked = n === cur; i.onchange = () => { cur = n; legend(); draw(); }; bar.append(h('label', {}, i, l.name)); });
  const box = $('chart');
  box.addEventListener('keydown', (e) => { const f = keys[e.key]; if (f && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); f(); } });
  const where = (e) => geo.x0 + (e.clientX - box.getBoundingClientRect().left - geo.L) / geo.w * (geo.x1 - geo.x0);
  let drag = null;
  box.addEventListener('pointermove', (e) => {
    if (drag !== null && hi - lo < 1) { const w = hi - lo, d = (drag - where(e)) / span(); lo = Math.max(0, Math.min(1 - w, lo + d)); hi = lo + w; draw(); drag = where(e); return; }
    at = lower(line().end, where(e)); read();
  });
  box.addEventListener('pointerdown', (e) => { drag = where(e); box.setPointerCapture(e.pointerId); });
  box.addEventListener('pointerup', () => { drag = null; });
  box.addEventListener('wheel', (e) => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom((e.deltaY || e.deltaX) > 0 ? 1.25 : .8, where(e) / span()); }, { passive: false });
  for (const [id, f] of [['zin', keys['+']], ['zout', keys['-']], ['zall', keys[0]], ['zpeak', keys.p], ['znext', keys.r]]) $(id).onclick = () => { f(); };
  document.querySelectorAll('[data-op]').forEach((b) => { b.onclick = () => { const i = line().first.get(+b.dataset.op); if (i !== undefined) { go(i); box.focus(); } }; });
  document.querySelectorAll('[data-replay]').forEach((b) => { b.onclick = () => { const [n, op] = b.dataset.replay.split(','); cur = +n; document.querySelectorAll('#pick input')[cur].checked = true; legend(); draw();
    const i = line().run.findIndex((r) => r[0] && r[1] === +op); if (i >= 0) go(i); box.focus(); }; });
  /* where a table is too wide, each row becomes a list of its cells, which need their headings */
  document.querySelectorAll('table').forEach((t) => { const names = [...t.querySelectorAll('th')].map((e) => e.textContent);
    t.querySelectorAll('tr').forEach((r) => [...r.querySelectorAll('td')].forEach((e, k) => { e.dataset.h = names[k]; })); t.className = 'cells'; });
  legend(); draw(); keys.p();
  let width = box.clientWidth;
  new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; requestAnimationFrame(draw); } }).observe(box);
}
function legend() {
  const l = line(), item = (c, style, text) => h('li', {}, h('i', { class: c, style }), text), list = [];
  USES.forEach((n, k) => { if (l.run.some((r) => r[4 + k])) list.push(item('', `background:var(--${VARS[k]})`, n)); });
  D.lines.forEach((o, n) => { if (n !== cur) list.push(item('solid', `border-color:${n ? hue(n) : 'var(--native)'}`, `${o.name}, in all`)); });
  if (l.limit > 0) list.push(item('dash', 'border-color:var(--limit)', 'limit'));
  PHASES.forEach((n, k) => { if (D.ops.some((o) => o[1] === k)) list.push(item('', `background:var(--${PVARS[k]})`, n)); });
  if (l.run.some((r) => r[0])) list.push(item('tick', 'background:var(--replay)', 'an op runs again'));
  if (l.drops.length) list.push(item('tick', 'background:var(--evict)', 'a tensor is evicted'));
  if (l.copies.length) list.push(item('tick', 'background:var(--copy)', 'copy to the host (upper), back (lower)'));
  list.push(item('up', 'border-color:var(--accent)', 'the op told of below'));
  if (l.run.some((r) => r[0])) list.push(item('up dots', 'border-color:var(--replay)', 'its original'));
  $('legend').replaceChildren(...list);
}
start();
})();
