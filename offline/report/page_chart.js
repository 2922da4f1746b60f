/* page_chart.js: memory over the ops as blocks of tensors, what is told of an op and a tensor, the curve of prices. */
const hue = (n) => `hsl(${(250 + n * 47) % 360} 65% 58%)`;
const box = $('chart'), canvas = h('canvas', {}), over = h('canvas', {}), face = svgEl('svg', { role: 'img' });
box.append(canvas, over, face);
let geo = null, hover = -1, group = null; /* group: 1 for each tensor that is not to be faded; null: all */

/* Tensors from the bottom up: what outlives the iteration by kind, then by birth; a rebuilt tensor comes back between its neighbours. */
const ORDER = [...D.bufs.keys()].sort((a, b) => (born(a) < 0 ? D.bufs[a][1] - 9 : 0) - (born(b) < 0 ? D.bufs[b][1] - 9 : 0) || born(a) - born(b) || a - b);
const RANK = new Int32Array(D.bufs.length);
ORDER.forEach((b, k) => { RANK[b] = k; });
const SIZE = Float64Array.from(ORDER, (b) => D.bufs[b][0]); /* by rank */
const SCRATCH = -2, CHUNK = 64;

/* A colour of the style sheet as a pixel, mixed with another one. */
const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
function rgb(name) {
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}
const pixel = (c, d, part) => (255 << 24 | (c[2] + (d[2] - c[2]) * part) << 16 | (c[1] + (d[1] - c[1]) * part) << 8 | (c[0] + (d[0] - c[0]) * part)) >>> 0;

/* Each pixel of the plot: the tensor there (-1: none) and its colour; the run that each column shows. Where several runs share a column of pixels, the one with the most memory is
 * shown; where several tensors share a pixel, the largest. */
function blocks(l, W, H) {
  const ids = new Int32Array(W * H).fill(-1), colour = new Uint32Array(W * H), runs = new Int32Array(W).fill(-1), column = new Int32Array(H), shade = new Uint32Array(H);
  const ink = rgb('ink'), card = rgb('card'), tone = VARS.map((v) => { const c = rgb(v); return [0, .09, .18].map((p) => pixel(c, card, p)); });
  const faded = VARS.map((v) => pixel(rgb(v), card, .8)), edge = VARS.map((v) => pixel(rgb(v), ink, .35)), edgeFaded = VARS.map((v) => pixel(rgb(v), card, .6));
  const on = new Uint8Array(D.bufs.length), some = new Float64Array(Math.ceil(D.bufs.length / CHUNK) || 1);
  const ylo = S.ylo * most * 1.06, scale = H / ((S.yhi - S.ylo) * most * 1.06), perPixel = (S.hi - S.lo) / W;
  let event = 0, reached = -1, from = lower(l.x1, S.lo + 1e-9), shown = -1, start = 0;
  const put = (row0, row1, b, k) => {
    const lo = Math.max(row0, 0), hi = Math.min(row1, H), dim = group && (b < 0 || !group[b]);
    const c = dim ? faded[k] : tone[k][b >= 0 ? RANK[b] % 3 : 0];
    for (let r = lo; r < hi; r++) { column[H - 1 - r] = b; shade[H - 1 - r] = c; }
    if (row1 - row0 > 3 && row1 <= H && row1 > 0) shade[H - row1] = dim ? edgeFaded[k] : edge[k];
  };
  const stack = (run) => {
    for (; reached < run; event++) {
      const e = l.mem[event];
      if (e < 0) { reached++; continue; }
      const k = RANK[e >> 1], was = on[k];
      on[k] = e & 1 ? 0 : 1;
      some[k / CHUNK | 0] += (on[k] - was) * SIZE[k];
    }
    column.fill(-1); shade.fill(0);
    let sum = 0, row = 0, pending = -1, need = ylo + .5 / scale; /* bytes at which the next row of pixels begins */
    for (let c = 0; c < some.length; c++) {
      if (!some[c]) continue;
      if (sum + some[c] < need) { sum += some[c]; continue; } /* nothing of this chunk is to be seen */
      for (let k = c * CHUNK, end = Math.min(k + CHUNK, on.length); k < end; k++) {
        if (!on[k]) continue;
        sum += SIZE[k];
        if (pending < 0 || SIZE[k] > SIZE[pending]) pending = k;
        if (sum < need) continue;
        const top = Math.floor((sum - ylo) * scale + .5), b = ORDER[top - row > 1 ? k : pending];
        put(row, top, b, D.bufs[b][1]);
        row = Math.max(top, 0); pending = -1; need = ylo + (row + .5) / scale;
        if (row >= H) return;
      }
    }
    const top = Math.round((l.run[run][3] - ylo) * scale);
    if (top > row) put(row, top, SCRATCH, USES.length - 1);
  };
  const flush = (to) => {
    if (shown < 0) return;
    stack(shown);
    runs.fill(shown, start, to);
    for (let r = 0, at = start; r < H; r++, at += W) for (let x = at, end = at + to - start; x < end; x++) { ids[x] = column[r]; colour[x] = shade[r]; }
  };
  for (let x = 0; x < W; x++) {
    const right = S.lo + (x + 1) * perPixel;
    while (from < l.run.length - 1 && l.x1[from] <= S.lo + x * perPixel) from++;
    let best = from;
    for (let i = from + 1; i < l.run.length && l.x0[i] < right; i++) if (l.run[i][3] > l.run[best][3]) best = i;
    if (l.x0[best] >= right || l.x1[best] <= S.lo + x * perPixel) best = -1;
    if (best !== shown && best >= 0 && best < shown) best = shown; /* time goes on: the peak of the column before may lie on both sides of it */
    if (best !== shown) { flush(x); shown = best; start = x; }
  }
  flush(W);
  return { ids, colour, runs };
}

/* A schedule's line: the most memory in each column. */
function path(ctx, l, X, Y, W) {
  let last = NaN, open = false;
  ctx.beginPath();
  for (let i = Math.max(0, lower(l.x1, S.lo) - 1); i < l.run.length && l.x0[i] <= S.hi;) {
    const x = X(l.x0[i]);
    let top = l.run[i][3], j = i + 1;
    for (; j < l.run.length && X(l.x0[j]) < x + 1; j++) top = Math.max(top, l.run[j][3]);
    if (!open) ctx.moveTo(x, Y(top)); else if (top !== last) ctx.lineTo(x, Y(top));
    ctx.lineTo(X(l.x1[j - 1]), Y(top));
    last = top; open = true; i = j;
  }
  ctx.stroke();
}

function draw() {
  const W = Math.max(box.clientWidth, 280), narrow = W < 560, l = line(), hh = S.tall ? 900 : narrow ? 230 : 320, L = 50, R = 8, T = 22;
  const lanes = l.run.some((r) => r[0]) || l.drops.length || l.copies.length ? l.copies.length ? 3 : 2 : 0, H = T + hh + 44 + lanes * 14, w = W - L - R;
  const dpr = Math.min(document.body.classList.contains('paper') ? 2 : window.devicePixelRatio || 1, 2), pw = Math.round(w * dpr), ph = Math.round(hh * dpr);
  const top = most * 1.06, X = (x) => (x - S.lo) / (S.hi - S.lo) * w, Y = (b) => hh - (b / top - S.ylo) / (S.yhi - S.ylo) * hh;
  geo = { X, L, T, w, hh, pw, ph, dpr, ids: null, runs: null };
  box.style.height = H + 'px';
  for (const c of [canvas, over]) { c.width = pw; c.height = Math.round((hh + 24 + lanes * 14) * dpr); c.style.cssText = `left:${L}px;top:${T}px;width:${w}px;height:${hh + 24 + lanes * 14}px`; }
  const ctx = canvas.getContext('2d');
  if (l.run.length) {
    const { ids, colour, runs } = blocks(l, pw, ph);
    geo.ids = ids;
    geo.runs = runs;
    ctx.putImageData(new ImageData(new Uint8ClampedArray(colour.buffer), pw, ph), 0, 0);
  }
  ctx.scale(dpr, dpr);
  const css = getComputedStyle(document.documentElement), colourOf = (name) => css.getPropertyValue('--' + name).trim();
  ctx.save(); ctx.beginPath(); ctx.rect(0, -2, w, hh + 4); ctx.clip();
  D.lines.forEach((o, n) => { if (n !== S.line) { ctx.lineWidth = n ? 1.4 : 1.8; ctx.strokeStyle = n ? hue(n) : colourOf('native'); path(ctx, o, X, Y, w); } });
  ctx.restore();
  /* lanes under the bands of the phases: replays, evictions, copies */
  const lane = (n) => hh + 24 + n * 14, mark = (a, b, y, height) => ctx.fillRect(X(a), y, Math.max(X(b) - X(a), 1.2), height), seen = (a, b) => b >= S.lo && a <= S.hi;
  ctx.fillStyle = colourOf('replay');
  l.run.forEach((r, i) => { if (r[0] && seen(l.x0[i], l.x1[i])) mark(l.x0[i], l.x1[i], lane(0), 10); });
  ctx.fillStyle = colourOf('evict');
  for (const e of l.drops) { const x = e[2] < l.run.length ? l.x0[e[2]] : N; if (seen(x, x)) mark(x, x, lane(1), 10); }
  ctx.fillStyle = colourOf('copy');
  if (l.copies.length) {
    const end = l.run.map((r) => r[2]), place = (ns) => { const i = lower(end, ns); if (i >= l.run.length) return N; const d = D.ops[l.run[i][1]][2]; return l.x1[i] - Math.min(1, (end[i] - ns) / (d || 1)) * (l.x1[i] - l.x0[i]); };
    for (const c of l.copies) { const a = place(c[1]), b = place(c[2]); if (seen(a, b)) mark(a, b, lane(2) + (c[3] ? 0 : 5.5), 4.5); }
  }
  axes(l, W, H, lanes, narrow);
  read();
}

function axes(l, W, H, lanes, narrow) {
  const { X, L, T, w, hh } = geo, top = most * 1.06, lo = S.ylo * top, hi = S.yhi * top, [unit, size] = fitting(hi, MEM);
  const Y = (b) => T + hh - (b - lo) / (hi - lo) * hh, add = (tag, attrs, text) => face.append(svgEl(tag, attrs, text));
  for (const [k, v] of Object.entries({ viewBox: `0 0 ${W} ${H}`, height: H, 'aria-label': `tensors in memory over one iteration: ${line().name}, against ${native.name}` })) face.setAttribute(k, v);
  face.replaceChildren();
  const ys = nice((hi - lo) / size, S.tall ? 12 : 5);
  for (let v = Math.ceil(lo / size / ys) * ys; v * size <= hi; v += ys) {
    add('line', { class: 'grid', x1: L - 4, x2: L, y1: Y(v * size), y2: Y(v * size) });
    add('text', { x: L - 7, y: Y(v * size) + 4, 'text-anchor': 'end' }, +v.toPrecision(6));
  }
  add('text', { x: L - 7, y: 12, 'text-anchor': 'end' }, unit);
  add('line', { class: 'grid', x1: L, x2: L + w, y1: T + hh, y2: T + hh });
  if (l.limit > lo && l.limit < hi) {
    add('line', { x1: L, x2: L + w, y1: Y(l.limit), y2: Y(l.limit), 'stroke-width': 1.6, 'stroke-dasharray': '6 4', style: 'stroke:var(--limit)' });
    add('text', { class: 'halo', x: L + w - 4, y: Y(l.limit) - 5, 'text-anchor': 'end', style: 'fill:var(--limit)' }, 'limit ' + mem(l.limit));
  }
  const yb = T + hh + 4;
  for (let i = Math.max(0, Math.floor(S.lo)), end = Math.min(D.ops.length, Math.ceil(S.hi)); i < end;) {
    let j = i + 1;
    const p = D.ops[i][1];
    while (j < end && (D.ops[j][1] === p || X(j) - X(i) < .5)) j++;
    const a = L + Math.max(X(i), 0), b = L + Math.min(X(j), w);
    add('rect', { x: a, y: yb, width: Math.max(b - a, .6), height: 15, style: `fill:var(--${PVARS[p]})` });
    if (b - a > 64) add('text', { class: 'in', x: (a + b) / 2, y: yb + 11.5, 'text-anchor': 'middle' }, PHASES[p]);
    i = j;
  }
  ['replay', 'drop', 'copy'].slice(0, lanes).forEach((n, k) => add('text', { x: L - 7, y: T + hh + 33 + k * 14, 'text-anchor': 'end', class: 'small' }, n));
  const xs = Math.max(1, nice(S.hi - S.lo, narrow ? 4 : 10)), foot = T + hh + 36 + lanes * 14;
  for (let v = Math.ceil(S.lo / xs) * xs; v <= Math.min(S.hi, D.ops.length); v += xs) add('text', { x: L + X(v), y: foot, 'text-anchor': X(v) > w - 12 ? 'end' : 'middle' }, v);
  add('text', { x: L - 7, y: foot, 'text-anchor': 'end' }, 'op');
  add('line', { id: 'cursor', y1: T, y2: foot - 12, 'stroke-width': 1.4, style: 'stroke:var(--accent)' });
  add('line', { id: 'origin', y1: T, y2: foot - 12, 'stroke-width': 1.6, 'stroke-dasharray': '2 3', style: 'stroke:var(--replay)' });
}

/* The tensor that is told of: the one that was clicked, else the one pointed at. */
const told = () => S.tensor >= 0 ? S.tensor : hover;
function outline() {
  const ctx = over.getContext('2d'), b = told(), { ids, pw, ph } = geo;
  ctx.clearRect(0, 0, over.width, over.height);
  if (b === -1 || !ids) return;
  const c = rgb('ink'), light = rgb('card'), image = ctx.createImageData(pw, ph), to = new Uint32Array(image.data.buffer);
  const line_ = pixel(c, c, 0), fill = (pixel(light, light, 0) & 0xffffff | 0x66 << 24) >>> 0;
  for (let at = 0, y = 0; y < ph; y++)
    for (let x = 0; x < pw; x++, at++) {
      if (ids[at] !== b) continue;
      const rim = !x || x === pw - 1 || !y || y === ph - 1 || ids[at - 1] !== b || ids[at + 1] !== b || ids[at - pw] !== b || ids[at + pw] !== b;
      to[at] = rim ? line_ : fill;
    }
  ctx.putImageData(image, 0, 0);
}

const link = (run, text) => h('button', { class: 'link', onclick: () => go(run) }, text);
const listed = (runs, l) => runs.slice(0, 4).flatMap((i, k) => [k ? ', ' : '', link(i, place(l, i))]).concat(runs.length > 4 ? ` and ${runs.length - 4} times more` : '');
/* Where a run stands on the axis: a replay is before the op that it shares a place with. */
const place = (l, i) => l.run[i][0] ? `op ${Math.floor(l.x0[i])}` : `op ${l.run[i][1]}`;

function stackOf(op) {
  const site = siteOf(op), tied = op >= 0 ? D.ops[op][4] : -1, out = [];
  if (tied >= 0) out.push(h('div', {}, 'backward of ', link(line().first[tied], `op ${tied}`), ' ' + cut(opName(tied))));
  if (site.py.length) out.push(h('ol', {}, ...site.py.map((f) => h('li', {}, `${f.file}:${f.line} ${f.name}`))));
  if (site.c.length) out.push(h('div', { class: 'soft' }, site.c.join(' \u2039 ')));
  return out;
}

function tellOp(l) {
  const r = l.run[S.at], op = r[1], start = r[2] - D.ops[op][2];
  const top = h('div', {}, `${r[0] ? 'before op ' + Math.floor(l.x0[S.at]) + ', replay of ' : ''}${who(op)} (${PHASES[D.ops[op][1]]}, ${time(D.ops[op][2])}, at ${time(Math.max(start, 0))}): `, h('b', {}, mem(r[3])));
  if (S.line && !r[0]) top.append(`; ${native.name}: ${mem(native.run[native.first[op]][3])}`);
  if (r[0]) top.append('; first ran as ', link(l.first[op], `op ${op}`));
  else if (l.again.has(op)) top.append('; run again before ', ...listed(l.again.get(op), l));
  const gone = l.drops.filter((e) => e[2] === S.at), out = h('div', {}, ...gone.slice(0, 4).flatMap((e, k) => [k ? '; ' : 'evicted before it: ', `tensor ${e[0]}, ${mem(D.bufs[e[0]][0])}, `,
    ...born(e[0]) < 0 ? ['from before the iteration'] : ['made by ', link(l.first[born(e[0])], `op ${born(e[0])}`)],
    ...e[3] < 0 ? [] : [', rebuilt before ', link(e[3], place(l, e[3]))]]), gone.length > 4 ? `; and ${gone.length - 4} more` : '');
  const kinds = h('div', { class: 'kinds' }, ...USES.map((n, k) => { const v = l.kinds[S.at * USES.length + k]; return v ? h('span', {}, `${n} ${mem(v)}`) : ''; }));
  return [top, kinds, out, ...stackOf(op)];
}

function tellTensor(l) {
  const b = told();
  if (b === -1) return [h('div', { class: 'soft' }, 'A tensor and its stack are told here: point at a block, or press up or down in the chart.')];
  if (b === SCRATCH) return [h('div', {}, 'scratch of the replay: what it changes besides, and nobody reads')];
  const [bytes, use, from, dies] = D.bufs[b], life = dies < 0 ? from < 0 ? 'throughout' : `from op ${from} on` : `from op ${Math.max(from, 0)} to ${dies}`;
  const top = h('div', {}, h('i', { class: 'chip', style: `background:var(--${VARS[use]})` }), `tensor ${b}, `, h('b', {}, mem(bytes)), `, ${USES[use]}, ${life}`);
  if (from >= 0) top.append('; made by ', link(l.first[from], `op ${from}`), ' ' + cut(opName(from)));
  const gone = l.drops.filter((e) => e[0] === b);
  const fate = h('div', {}, !S.line ? '' : gone.length ? `${line().name} evicts it before ` : `stays under ${line().name}`, ...gone.slice(0, 3).flatMap((e, k) => [k ? '; ' : '',
    e[2] < l.run.length ? link(e[2], place(l, e[2])) : 'the end', ...e[3] < 0 ? [] : [', rebuilt before ', link(e[3], place(l, e[3]))]]), gone.length > 3 ? `; ${gone.length - 3} times more` : '');
  return [top, fate, ...stackOf(from)];
}

function read() {
  const l = line();
  if (!l.run.length) return $('read').replaceChildren('nothing runs');
  S.at = Math.max(0, Math.min(S.at, l.run.length - 1));
  const r = l.run[S.at], x = (i) => geo.L + geo.X((l.x0[i] + l.x1[i]) / 2), tied = D.ops[r[1]][4];
  const set = (id, i) => { const e = $(id); e.style.display = i < 0 || x(i) < geo.L || x(i) > geo.L + geo.w ? 'none' : ''; if (i >= 0) { e.setAttribute('x1', x(i)); e.setAttribute('x2', x(i)); } };
  set('cursor', S.at);
  set('origin', r[0] ? l.first[r[1]] : tied >= 0 ? l.first[tied] : -1);
  $('read').replaceChildren(h('div', {}, ...tellOp(l)), h('div', { class: S.tensor >= 0 ? 'kept' : '' }, ...tellTensor(l)));
  outline();
  keep();
  if (typeof moved === 'function') moved();
}

/* ---- going about ----------------------------------------------------------------------------------------------------------- */

function go(i) {
  const l = line();
  S.at = Math.max(0, Math.min(i, l.run.length - 1));
  const m = (l.x0[S.at] + l.x1[S.at]) / 2, w = S.hi - S.lo;
  if (m < S.lo || m > S.hi) { S.lo = Math.max(0, Math.min(N - w, m - w / 2)); S.hi = S.lo + w; draw(); } else read();
}
function zoom(f, center) {
  const w = Math.min(N, Math.max((S.hi - S.lo) * f, Math.min(N, 4))), c = center === undefined ? line().run.length ? line().x0[S.at] : 0 : center, k = (c - S.lo) / (S.hi - S.lo);
  S.lo = Math.max(0, Math.min(N - w, c - w * Math.max(0, Math.min(1, k)))); S.hi = S.lo + w;
  draw();
}
function zoomY(f, at) {
  const h_ = Math.min(1, Math.max((S.yhi - S.ylo) * f, 1e-4)), c = at === undefined ? (S.ylo + S.yhi) / 2 : at, k = (c - S.ylo) / (S.yhi - S.ylo);
  S.ylo = Math.max(0, Math.min(1 - h_, c - h_ * k)); S.yhi = S.ylo + h_;
  draw();
}
/* The tensor above or below the one told of, where the cursor stands. */
function step(d) {
  const { ids, pw, ph, dpr } = geo, l = line(), list = [];
  if (!ids) return;
  const own = geo.runs.indexOf(S.at), x = own >= 0 ? own : Math.max(0, Math.min(pw - 1, Math.floor(geo.X((l.x0[S.at] + l.x1[S.at]) / 2) * dpr)));
  for (let y = ph - 1; y >= 0; y--) { const id = ids[y * pw + x]; if (id >= 0 && id !== list[list.length - 1]) list.push(id); }
  const i = list.indexOf(told()), to = list[i < 0 ? d > 0 ? 0 : list.length - 1 : i + d];
  if (to !== undefined) { S.tensor = to; read(); }
}
function show(n) { S.line = n; hover = -1; document.querySelectorAll('#pick input')[n].checked = true; S.at = Math.min(S.at, line().run.length - 1); legend(); draw(); }
const next = (d, ok) => { const l = line(); for (let i = S.at + d; i >= 0 && i < l.run.length; i += d) if (ok(l, i)) return go(i); };
const dropped = (l, i) => l.drops.some((e) => e[2] === i);
const keys = {
  ArrowRight: () => go(S.at + 1), ArrowLeft: () => go(S.at - 1), ArrowUp: () => step(1), ArrowDown: () => step(-1), PageDown: () => go(S.at + 20), PageUp: () => go(S.at - 20),
  Home: () => go(0), End: () => go(1e9), Escape: () => { S.tensor = hover = -1; read(); },
  '+': () => zoom(.5), '=': () => zoom(.5), '-': () => zoom(2), '[': () => zoomY(2), ']': () => zoomY(.5), 0: () => { S.lo = S.ylo = 0; S.hi = N; S.yhi = 1; draw(); },
  r: () => next(1, (l, i) => l.run[i][0]), R: () => next(-1, (l, i) => l.run[i][0]), d: () => next(1, dropped), D: () => next(-1, dropped),
  o: () => { const r = line().run[S.at], tied = r ? D.ops[r[1]][4] : -1; if (r && r[0]) go(line().first[r[1]]); else if (tied >= 0) go(line().first[tied]); },
  p: () => go(line().top),
};
function point(e) {
  const r = box.getBoundingClientRect(), x = e.clientX - r.left - geo.L, y = e.clientY - r.top - geo.T;
  return { x: S.lo + x / geo.w * (S.hi - S.lo), y: S.yhi - y / geo.hh * (S.yhi - S.ylo),
    run: geo.runs && x >= 0 && x < geo.w && geo.runs[Math.floor(x * geo.dpr)] >= 0 ? geo.runs[Math.floor(x * geo.dpr)] : lower(line().x1, S.lo + x / geo.w * (S.hi - S.lo)),
    id: geo.ids && x >= 0 && x < geo.w && y >= 0 && y < geo.hh ? geo.ids[Math.min(geo.ph - 1, Math.floor(y * geo.dpr)) * geo.pw + Math.min(geo.pw - 1, Math.floor(x * geo.dpr))] : -1 };
}
function usePointer() {
  let drag = null, awaited = false;
  box.addEventListener('pointermove', (e) => {
    if (awaited) return;
    awaited = true;
    requestAnimationFrame(() => {
      awaited = false;
      const p = point(e);
      if (drag && (S.hi - S.lo < N || S.yhi - S.ylo < 1) && (Math.abs(e.clientX - drag.cx) > 3 || Math.abs(e.clientY - drag.cy) > 3 || drag.moved)) {
        const w = S.hi - S.lo, v = S.yhi - S.ylo;
        drag.moved = true;
        S.lo = Math.max(0, Math.min(N - w, S.lo + drag.x - p.x)); S.hi = S.lo + w;
        S.ylo = Math.max(0, Math.min(1 - v, S.ylo + drag.y - p.y)); S.yhi = S.ylo + v;
        return draw();
      }
      hover = p.id;
      if (S.tensor < 0) { S.at = p.run; read(); }
    });
  });
  box.addEventListener('pointerdown', (e) => { const p = point(e); drag = { ...p, cx: e.clientX, cy: e.clientY, moved: false }; });
  box.addEventListener('click', (e) => {
    const moved_ = drag && drag.moved, p = point(e);
    drag = null;
    if (moved_) return;
    S.tensor = p.id >= 0 && p.id !== S.tensor ? p.id : -1;
    hover = p.id; S.at = p.run; read();
  });
  addEventListener('pointerup', () => setTimeout(() => { drag = null; }));
  box.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.shiftKey) return;
    e.preventDefault();
    const f = (e.deltaY || e.deltaX) > 0 ? 1.25 : .8, p = point(e);
    e.shiftKey ? zoomY(f, p.y) : zoom(f, p.x);
  }, { passive: false });
}

function legend() {
  const l = line(), item = (c, style, text) => h('li', {}, h('i', { class: c, style }), text), list = [];
  USES.forEach((n, k) => { if (l.kinds.some((v, i) => i % USES.length === k && v)) list.push(item('', `background:var(--${VARS[k]})`, n)); });
  D.lines.forEach((o, n) => { if (n !== S.line) list.push(item('solid', `border-color:${n ? hue(n) : 'var(--native)'}`, `${o.name}, in all`)); });
  if (l.limit > 0) list.push(item('dash', 'border-color:var(--limit)', 'limit'));
  PHASES.forEach((n, k) => { if (D.ops.some((o) => o[1] === k)) list.push(item('', `background:var(--${PVARS[k]})`, n)); });
  if (l.again.size) list.push(item('tick', 'background:var(--replay)', 'an op runs again'));
  if (l.drops.length) list.push(item('tick', 'background:var(--evict)', 'a tensor is evicted'));
  if (l.copies.length) list.push(item('tick', 'background:var(--copy)', 'copy to the host (upper), back (lower)'));
  list.push(item('up', 'border-color:var(--accent)', 'the op told of below'));
  if (l.again.size || D.ops.some((o) => o[4] >= 0)) list.push(item('up dots', 'border-color:var(--replay)', 'its original, or its forward op'));
  $('legend').replaceChildren(...list);
}

/* ---- what less memory costs ------------------------------------------------------------------------------------------------ */

function price() {
  const to = $('price');
  if (!to || !D.price) return;
  const W = Math.max(to.clientWidth - 24, 250), H = 250, L = 46, R = 14, T = 24, B = 34, w = W - L - R, hh = H - T - B, at = D.price.at;
  const plans = D.lines.slice(1).filter((l) => l.limit > 0).map((l) => ({ l, x: l.limit, y: l.ns / native.ns })), found = at.filter((p) => p[1] !== null);
  const right = Math.max(at[0][0], ...plans.map((p) => p.x)) * 1.04, high = Math.max(1.1, ...found.map((p) => 1 + p[1]), ...plans.map((p) => p.y)), ys = nice(high - 1, 4);
  const ceil = 1 + Math.ceil((high - 1) / ys - 1e-9) * ys, [unit, size] = fitting(right, MEM), X = (b) => L + b / right * w, Y = (v) => T + hh - (v - 1) / (ceil - 1) * hh;
  const svg = svgEl('svg', { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: 'img', 'aria-label': 'time of an iteration over the memory limit' });
  const add = (tag, attrs, text) => { const e = svgEl(tag, attrs, text); svg.append(e); return e; };
  for (let v = 1; v <= ceil + 1e-9; v += ys) {
    add('line', { class: 'grid', x1: L, x2: L + w, y1: Y(v), y2: Y(v) });
    add('text', { x: L - 7, y: Y(v) + 4, 'text-anchor': 'end' }, +v.toPrecision(4) + ' ×');
  }
  const xs = nice(right / size, W < 400 ? 4 : 6);
  for (let v = 0; v * size <= right; v += xs) add('text', { x: X(v * size), y: T + hh + 17, 'text-anchor': 'middle' }, +v.toPrecision(4));
  add('text', { x: L + w, y: H - 3, 'text-anchor': 'end' }, `limit, ${unit}`);
  add('text', { x: L, y: 12, 'text-anchor': 'start' }, 'time of an iteration');
  if (D.price.floor > 0) {
    add('rect', { x: L, y: T, width: Math.max(X(D.price.floor) - L, 1), height: hh, class: 'below' });
    add('text', { class: 'halo', x: Math.max(X(D.price.floor) - 6, L + 4), y: T + hh - 8, 'text-anchor': X(D.price.floor) - L > 70 ? 'end' : 'start' }, 'no plan');
  }
  add('polyline', { points: found.map((p) => `${X(p[0]).toFixed(1)},${Y(1 + p[1]).toFixed(1)}`).join(' '), class: 'curve' });
  at.forEach((p, k) => {
    if (p[1] === null) return add('text', { x: X(p[0]), y: T + hh - 4, 'text-anchor': 'middle', class: 'halo' }, '?').append(svgEl('title', {}, `${mem(p[0])}: no plan found`));
    add('circle', { cx: X(p[0]), cy: Y(1 + p[1]), r: k && k === D.price.knee ? 5.5 : 3.5, class: 'dot' }).append(svgEl('title', {}, `${mem(p[0])}: ${(1 + p[1]).toFixed(2)} ×`));
    if (k && k === D.price.knee) add('text', { class: 'halo', x: X(p[0]) + 10, y: Y(1 + p[1]) + 2 }, 'knee');
  });
  plans.forEach((p, k) => {
    const last = k === plans.length - 1;
    if (last) {
      add('line', { x1: X(p.x), x2: X(p.x), y1: T, y2: T + hh, 'stroke-width': 1.6, 'stroke-dasharray': '6 4', style: 'stroke:var(--limit)' });
      add('text', { class: 'halo', x: X(p.x) + (X(p.x) > L + w / 2 ? -6 : 6), y: T + 30, 'text-anchor': X(p.x) > L + w / 2 ? 'end' : 'start', style: 'fill:var(--limit)' }, `today\u2019s limit, ${mem(p.x)}`);
    }
    add('path', { d: `M${X(p.x)} ${Y(p.y) - 6}l6 6l-6 6l-6 -6z`, style: `fill:${last ? 'var(--limit)' : hue(k + 1)}` }).append(svgEl('title', {}, `${p.l.name}: ${mem(p.x)}, ${p.y.toFixed(2)} ×`));
  });
  to.replaceChildren(svg);
}
