/* page_groups.js: memory by module, line, kernel or kind, as a tree that folds, sorts and is searched; and the start of the page. */
const ROWS = 400, TENSORS = 40; /* rows drawn at most; tensors listed of a group */
const LIBRARY = /^torch\//;

/* The program's own line: the innermost that is not PyTorch's, else the innermost. */
const ownLine = (s) => s.py.find((f) => !LIBRARY.test(f.file)) || s.py[0];
const lineText = (f) => `${f.file}:${f.line} ${f.name}`;
/* Modules around a call, outermost first: "Block.forward" on the stack is Block. Where there is no Python, the calls of C. */
const modulesOf = (s) => s.py.length ? s.py.filter((f) => /\.forward$/.test(f.name)).map((f) => f.name.replace(/\.forward$/, '').split('.').pop()).reverse() : [...s.c].reverse();
const EARLIER = 'there before the iteration', OUTSIDE = 'outside of modules';
const kindOf = (b) => USES[D.bufs[b][1]];
const GROUPS = {
  module: ['module', (b, op) => { const s = siteOf(op), m = modulesOf(s), l = ownLine(s); return op < 0 ? [EARLIER, kindOf(b)] : [...m.length ? m : [OUTSIDE], ...l ? [lineText(l)] : [], opName(op)]; }],
  line: ['source line', (b, op) => { const s = siteOf(op), l = ownLine(s); return op < 0 ? [EARLIER, kindOf(b)] : l ? [l.file, `line ${l.line} ${l.name}`, opName(op)] : [s.c.length ? s.c[Math.min(1, s.c.length - 1)] : 'no line is known', opName(op)]; }],
  kernel: ['kernel', (b, op) => op < 0 ? [EARLIER, kindOf(b)] : [opName(op)]],
  kind: ['kind', (b, op) => [kindOf(b), op < 0 ? EARLIER : opName(op)]],
};

/* A node: its tensors and ops, in all that lies below it. */
let root = null, rows = [], open_ = new Set(), lit = '', sort = ['native', -1], current = 0, shownAt = '';
const node = (name, parent) => ({ name, parent, key: parent ? parent.key + '\u0001' + name : '', kids: new Map(), bufs: [], native: 0, plan: 0, count: 0, time: 0, again: 0 });
const under = (name, parent) => { let n = parent.kids.get(name); if (!n) parent.kids.set(name, n = node(name, parent)); return n; };
function build() {
  const path_ = GROUPS[S.by][1], leaf = new Map(), ns = new Map();
  root = node('', null);
  D.bufs.forEach((x, b) => {
    if (!x[0]) return;
    const n = path_(b, x[2]).reduce((at, name) => under(name, at), root);
    n.bufs.push(b);
    if (x[2] >= 0 && !leaf.has(x[2])) leaf.set(x[2], n);
  });
  const l = line();
  D.ops.forEach((o, op) => {
    const n = leaf.get(op) || (S.by !== 'kind' ? path_(-1, op).reduce((at, name) => under(name, at), root) : null);
    for (let a = n; a; a = a.parent) { a.time += o[2]; a.again += (l.again.get(op) || []).length * o[2]; }
  });
  open_ = new Set(['']);
  for (let n = root; n.kids.size === 1;) { n = n.kids.values().next().value; open_.add(n.key); }
  weigh(true);
  let level = [root];
  for (let depth = 0; depth < 3; depth++) { /* unfolds the large ones as long as they fill no more than a screen */
    level = level.flatMap((n) => open_.has(n.key) ? [...n.kids.values()] : []).filter((n) => n.kids.size > 1 && n.native > root.native / 8);
    if (!level.length || level.reduce((sum, n) => sum + n.kids.size, 0) > 8) break;
    level.forEach((n) => open_.add(n.key));
  }
}

/* What each group holds: at the peak of the program and of the schedule shown, or at the op pointed at. */
function weigh(force) {
  const l = line(), op = l.run.length ? l.run[S.at][1] : -1, here = S.when === 'here';
  const key = `${S.line} ${S.by} ${here ? S.at : 'peak'}`;
  if (!force && key === shownAt || op < 0) return false;
  shownAt = key;
  const a = liveAt(native, here ? native.first[op] : native.top), b = liveAt(l, here ? S.at : l.top);
  const clear = (n) => { n.native = n.plan = n.count = 0; n.kids.forEach(clear); };
  const sum = (n) => {
    for (const x of n.bufs) { const bytes = D.bufs[x][0]; n.native += a[x] * bytes; n.plan += b[x] * bytes; n.count += a[x] | b[x]; }
    n.kids.forEach((k) => { sum(k); n.native += k.native; n.plan += k.plan; n.count += k.count; });
  };
  clear(root); sum(root);
  root.a = a; root.b = b;
  return true;
}

const COLUMNS = [['name', 'group'], ['native', 'native'], ['plan', 'plan'], ['count', 'tensors'], ['time', 'time'], ['again', 'run again']];
function compare(x, y) {
  const [by, d] = sort;
  return d * (by === 'name' ? x.name.localeCompare(y.name, undefined, { numeric: true }) : x[by] - y[by]) || y.native + y.plan - x.native - x.plan || x.name.localeCompare(y.name);
}
const matches = (n, text) => n.name.toLowerCase().includes(text) || [...n.kids.values()].some((k) => matches(k, text));

/* The rows that are to be seen, of groups unfolded and found. */
function list() {
  const text = S.find.trim().toLowerCase(), out = [];
  let left = 0;
  const walk = (n, depth, found) => {
    const kids = [...n.kids.values()].filter((k) => (k.native || k.plan || k.time) && (!text || found || matches(k, text))).sort(compare);
    for (const k of kids) {
      const hit = found || text && k.name.toLowerCase().includes(text), wide = open_.has(k.key) || text && !hit;
      if (out.length >= ROWS) { left++; continue; }
      out.push({ n: k, depth, wide, fold: k.kids.size || k.bufs.length });
      if (wide) walk(k, depth + 1, hit);
    }
    if (n === root || !open_.has(n.key)) return;
    const live = n.bufs.filter((b) => root.a[b] || root.b[b]).sort((p, q) => D.bufs[q][0] - D.bufs[p][0] || p - q);
    live.slice(0, TENSORS).forEach((b) => out.push({ b, n: { name: `tensor ${b}`, key: n.key + '\u0001\u0001' + b, native: root.a[b] * D.bufs[b][0], plan: root.b[b] * D.bufs[b][0], count: 1, time: 0, again: 0 }, depth }));
    if (live.length > TENSORS) out.push({ more: `and ${live.length - TENSORS} smaller tensors`, depth });
  };
  walk(root, 0, false);
  if (left) out.push({ more: `and ${left} groups more; find something`, depth: 0 });
  return out;
}

function row(r, i) {
  const indent = { style: `--depth:${Math.min(r.depth, 12)}` };
  if (r.more) return h('tr', { class: 'more' }, h('td', indent, r.more));
  const n = r.n, share = root.native ? n.native / root.native : 0, cells = [mem(n.native), mem(n.plan), n.count || '', n.time ? time(n.time) : '', n.again ? time(n.again) : ''];
  const twist = h('span', { class: 'twist', 'aria-hidden': 'true' }, r.fold ? r.wide ? '\u25be' : '\u25b8' : '');
  const name = h('td', { ...indent, title: cut(n.name) === n.name ? undefined : n.name }, twist, r.b === undefined ? '' : h('i', { style: `background:var(--${VARS[D.bufs[r.b][1]]})` }), cut(n.name),
    r.b !== undefined && born(r.b) >= 0 && D.ops[born(r.b)][4] >= 0 ? h('span', { class: 'soft' }, ` in backward`) : '');
  const tr = h('tr', { tabindex: i === current ? 0 : -1, 'aria-level': r.depth + 1, 'aria-expanded': r.fold ? String(!!r.wide) : undefined, class: lit === n.key ? 'lit' : '', 'data-i': i }, name,
    ...cells.map((c, k) => h('td', { class: k > 1 ? 'opt' : k === 1 && !S.line ? 'gone' : '', 'data-h': COLUMNS[k + 1][1] }, c)));
  tr.style.setProperty('--share', (100 * share).toFixed(1) + '%');
  return tr;
}

function tree(focus) {
  const t = $('tree');
  rows = list();
  current = Math.max(0, Math.min(current, rows.length - 1));
  const head = h('tr', {}, ...COLUMNS.map(([by, text], k) => h('th', { 'aria-sort': sort[0] === by ? sort[1] < 0 ? 'descending' : 'ascending' : 'none', class: k > 2 ? 'opt' : k === 2 && !S.line ? 'gone' : '' },
    h('button', { class: 'sort', 'data-by': by, onclick: () => { sort = [by, sort[0] === by ? -sort[1] : by === 'name' ? 1 : -1]; tree(); t.querySelector(`[data-by=${by}]`).focus(); } },
      k === 2 && S.line ? line().name : text, sort[0] === by ? sort[1] < 0 ? ' \u25be' : ' \u25b4' : ''))));
  t.replaceChildren(h('table', { role: 'treegrid', 'aria-label': 'memory by groups' }, h('thead', {}, head), h('tbody', {}, ...rows.map(row))));
  $('treehint').textContent = rows.length ? `${S.when === 'here' ? `While ${who(line().run[S.at][1])} runs` : 'At the peak of each'}: what a group's ops made, in backward too (a gradient counts where its forward op is). `
    + 'A click on a group marks it in the chart; on its arrow unfolds it. By keyboard: arrows, Enter marks.' : 'Nothing is called so.';
  if (focus) { const e = t.querySelector(`tr[data-i="${current}"]`); if (e) e.focus(); }
}

function fold(i, wide, focus) {
  const r = rows[i];
  if (!r || !r.fold) return;
  wide ? open_.add(r.n.key) : open_.delete(r.n.key);
  current = i;
  tree(focus);
}
/* Marks a group in the chart: all else fades. A tensor is told of instead. */
function mark(i, focus) {
  const r = rows[i];
  if (!r || r.more) return;
  current = i;
  if (r.b !== undefined) { S.tensor = r.b; const from = born(r.b); tree(focus); if (from >= 0) go(line().first[from]); else read(); return; }
  lit = lit === r.n.key ? '' : r.n.key;
  group = lit ? new Uint8Array(D.bufs.length) : null;
  const all = (n) => { n.bufs.forEach((b) => { group[b] = 1; }); n.kids.forEach(all); };
  if (lit) all(r.n);
  tree(focus);
  draw();
}
function useTree() {
  const t = $('tree'), at = (e) => { const tr = e.target.closest('tr[data-i]'); return tr ? +tr.dataset.i : -1; };
  t.addEventListener('click', (e) => { const i = at(e); if (i >= 0) e.target.classList.contains('twist') && rows[i].fold ? fold(i, !rows[i].wide, true) : mark(i, true); });
  t.addEventListener('keydown', (e) => {
    const i = at(e), r = rows[i];
    if (i < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    const to = (k) => { current = Math.max(0, Math.min(rows.length - 1, k)); t.querySelectorAll('tr[data-i]').forEach((x) => { x.tabIndex = +x.dataset.i === current ? 0 : -1; }); const x = t.querySelector(`tr[data-i="${current}"]`); if (x) x.focus(); };
    const does = {
      ArrowDown: () => to(i + 1), ArrowUp: () => to(i - 1), Home: () => to(0), End: () => to(rows.length - 1), Enter: () => mark(i, true), ' ': () => mark(i, true),
      ArrowRight: () => r.fold && !r.wide ? fold(i, true, true) : to(i + 1),
      ArrowLeft: () => { if (r.fold && open_.has(r.n.key)) return fold(i, false, true); for (let k = i; k-- > 0;) if (rows[k].depth < r.depth) return to(k); },
    }[e.key];
    if (does) { e.preventDefault(); does(); }
  });
}
/* The chart tells another op: groups follow it where they are asked to. */
let following = 0;
function moved() {
  if (S.when !== 'here' || !root) return;
  clearTimeout(following);
  following = setTimeout(() => { if (weigh(false)) tree(); }, 60);
}
function regroup() { lit = ''; group = null; current = 0; build(); tree(); keep(); }

/* ---- the start ------------------------------------------------------------------------------------------------------------- */

function toChart(run) { S.tensor = hover = -1; if (run >= 0) go(run); box.focus(); box.scrollIntoView({ block: 'nearest' }); }
function usePage() {
  radios($('pick'), 'line', D.lines.map((l, n) => [n, l.name]), S.line, (n) => { show(n); if (root) regroup(); });
  box.addEventListener('keydown', (e) => { const f = keys[e.key]; if (f && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); f(); } });
  for (const [id, f] of [['zin', keys['+']], ['zout', keys['-']], ['zall', keys[0]], ['zpeak', keys.p], ['znext', keys.r]]) $(id).onclick = () => { f(); };
  $('ztall').onclick = () => { S.tall = 1 - S.tall; $('ztall').setAttribute('aria-pressed', String(!!S.tall)); draw(); };
  $('ztall').setAttribute('aria-pressed', String(!!S.tall));
  const use = (what, f) => document.querySelectorAll(`main [data-${what}]`).forEach((b) => { b.onclick = () => f(b.dataset[what].split(',').map(Number)); });
  use('op', ([op]) => toChart(line().first[op]));
  use('replay', ([n, op]) => { if (n !== S.line) { show(n); if (root) regroup(); } toChart((line().again.get(op) || [-1])[0]); });
  use('buf', ([b]) => { toChart(born(b) >= 0 ? line().first[born(b)] : -1); S.tensor = b; read(); });
  /* where a table is too wide, each row becomes a list of its cells, which need their headings */
  document.querySelectorAll('main > .box table, .two table').forEach((t) => { const names = [...t.querySelectorAll('th')].map((e) => e.textContent);
    t.querySelectorAll('tr').forEach((r) => [...r.querySelectorAll('td')].forEach((e, k) => { e.dataset.h = names[k]; })); t.classList.add('cells'); });
}
function start() {
  usePage();
  usePointer();
  if (S.at < 0) S.at = line().top;
  legend(); draw(); price();
  const sited = D.ops.some((o) => o[3] >= 0), by = Object.keys(GROUPS).filter((k) => sited || k === 'kernel' || k === 'kind');
  if (!by.includes(S.by)) S.by = by[0];
  if (line().run.length) {
    $('where').hidden = false;
    radios($('by'), 'by', by.map((k) => [k, GROUPS[k][0]]), S.by, (v) => { S.by = v; regroup(); });
    radios($('when'), 'when', [['peak', 'at the peak'], ['here', 'at the op pointed at']], S.when, (v) => { S.when = v; if (weigh(true)) tree(); keep(); });
    $('find').value = S.find;
    $('find').oninput = () => { S.find = $('find').value; current = 0; tree(); keep(); };
    build(); tree(); useTree();
  }
  clearTimeout(keeping);
  let width = box.clientWidth;
  new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; requestAnimationFrame(() => { draw(); price(); }); } }).observe(box);
  const again = () => { draw(); price(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
  addEventListener('beforeprint', () => { document.body.classList.add('paper'); document.documentElement.classList.add('paper'); again(); });
  addEventListener('afterprint', () => { document.body.classList.remove('paper'); document.documentElement.classList.remove('paper'); again(); });
}
start();
