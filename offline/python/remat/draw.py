"""Pictures without a plotting library: memory over an iteration under each plan (`draw`), lines over limits (`draw_sweep`).

The file's name says the format: .svg, or .png, painted here. Both are made of the same lines, areas and words.
"""
from __future__ import annotations

import os
import struct
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import output
from .judge import simulate
from .plan import Plan
from .trace import Path, Trace

Color = Tuple[int, int, int]
INK, GRID, WHITE = (40, 44, 52), (222, 226, 232), (255, 255, 255)
COLORS: List[Color] = [(37, 99, 175), (209, 95, 30), (46, 139, 87), (148, 68, 160), (190, 40, 60), (110, 110, 30)]

# letters of five columns and seven rows: a column a byte, the lowest bit on top
_GLYPHS: Dict[str, str] = {
    " ": "0000000000", "%": "2313086462", "(": "001c224100", ")": "0041221c00", "+": "08083e0808", ",": "0050300000", "-": "0808080808",
    ".": "0060600000", "/": "2010080402", "0": "3e5149453e", "1": "00427f4000", "2": "4261514946", "3": "2141454b31", "4": "1814127f10",
    "5": "2745454539", "6": "3c4a494930", "7": "0171090503", "8": "3649494936", "9": "064949291e", ":": "0036360000", "=": "1414141414",
    "A": "7e1111117e", "B": "7f49494936", "C": "3e41414122", "D": "7f4141221c", "E": "7f49494941", "F": "7f09090901", "G": "3e4149497a",
    "H": "7f0808087f", "I": "00417f4100", "J": "2040413f01", "K": "7f08142241", "L": "7f40404040", "M": "7f020c027f", "N": "7f0408107f",
    "O": "3e4141413e", "P": "7f09090906", "Q": "3e4151215e", "R": "7f09192946", "S": "4649494931", "T": "01017f0101", "U": "3f4040403f",
    "V": "1f2040201f", "W": "3f4038403f", "X": "6314081463", "Y": "0708700807", "Z": "6151494543", "_": "4040404040", "a": "2054545478",
    "b": "7f48444438", "c": "3844444420", "d": "384444487f", "e": "3854545418", "f": "087e090102", "g": "0c5252523e", "h": "7f08040478",
    "i": "00447d4000", "j": "2040443d00", "k": "7f10284400", "l": "00417f4000", "m": "7c04180478", "n": "7c08040478", "o": "3844444438",
    "p": "7c14141408", "q": "081414187c", "r": "7c08040408", "s": "4854545420", "t": "043f444020", "u": "3c4040207c", "v": "1c2040201c",
    "w": "3c4030403c", "x": "4428102844", "y": "0c5050503c", "z": "4464544c44",
}


class Picture:
    """Lines, areas and words, kept in order, written as SVG or PNG. Units are pixels, from the top left corner."""

    def __init__(self, width: int = 960, height: int = 480) -> None:
        self.width, self.height = width, height
        self.items: List[Tuple[Any, ...]] = []

    def line(self, points: Sequence[Tuple[float, float]], color: Color, width: int = 2) -> None:
        self.items.append(("line", list(points), color, width))

    def area(self, points: Sequence[Tuple[float, float]], base: float, color: Color) -> None:
        """What lies between a line that goes right and the height `base`."""
        self.items.append(("area", list(points), base, color))

    def text(self, x: float, y: float, words: str, color: Color = INK, anchor: str = "start") -> None:
        self.items.append(("text", x, y, words, color, anchor))

    def save(self, path: Path) -> None:
        name = os.fspath(path)
        if not name.endswith((".svg", ".png")):
            raise ValueError("%s: a picture is .svg or .png" % name)
        output.write(name, self.svg().encode() if name.endswith(".svg") else self.png())

    def svg(self) -> str:
        out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"><rect width="100%%" height="100%%" fill="#fff"/>'
               % (self.width, self.height, self.width, self.height)]
        for item in self.items:
            if item[0] == "text":
                _, x, y, words, color, anchor = item
                words = words.replace("&", "&amp;").replace("<", "&lt;")
                out.append('<text x="%.1f" y="%.1f" font-family="sans-serif" font-size="13" fill="rgb%s" text-anchor="%s">%s</text>'
                           % (x, y + 5, color, anchor, words))
                continue
            pts = " ".join("%.1f,%.1f" % p for p in item[1])
            if item[0] == "line":
                out.append('<polyline fill="none" stroke="rgb%s" stroke-width="%d" points="%s"/>' % (item[2], item[3], pts))
            elif item[1]:
                out.append('<polygon fill="rgb%s" points="%s %.1f,%.1f %.1f,%.1f"/>' % (item[3], pts, item[1][-1][0], item[2], item[1][0][0], item[2]))
        return "\n".join(out) + "\n</svg>\n"

    def png(self) -> bytes:
        self.pixels = bytearray(b"\xff" * (3 * self.width * self.height))
        for item in self.items:
            if item[0] == "text":
                self._words(*item[1:])
            elif item[0] == "area":
                _, points, base, color = item
                for (x0, y0), (x1, y1) in zip(points, points[1:]):
                    for x in range(round(x0), round(x1)):
                        y = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
                        self._column(x, min(y, base), max(y, base), color)
            else:
                _, points, color, width = item
                for a, b in zip(points, points[1:]):
                    self._segment(a, b, color, width)
        rows = b"".join(b"\0" + bytes(self.pixels[3 * self.width * y:3 * self.width * (y + 1)]) for y in range(self.height))

        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")

    def _dot(self, x: int, y: int, color: Color) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            at = 3 * (y * self.width + x)
            self.pixels[at:at + 3] = bytes(color)

    def _column(self, x: int, y0: float, y1: float, color: Color) -> None:
        for y in range(round(y0), round(y1)):
            self._dot(x, y, color)

    def _segment(self, a: Tuple[float, float], b: Tuple[float, float], color: Color, width: int) -> None:
        n = int(max(abs(b[0] - a[0]), abs(b[1] - a[1]))) + 1
        for i in range(n + 1):
            x, y = round(a[0] + (b[0] - a[0]) * i / n), round(a[1] + (b[1] - a[1]) * i / n)
            for k in range(width):
                self._dot(x, y + k - width // 2, color)
                self._dot(x + k - width // 2, y, color)

    def _words(self, x: float, y: float, words: str, color: Color, anchor: str) -> None:
        at = x - len(words) * 6 * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        for i, letter in enumerate(words):
            columns = bytes.fromhex(_GLYPHS.get(letter, _GLYPHS["-"]))
            for cx, bits in enumerate(columns):
                for cy in range(7):
                    if bits >> cy & 1:
                        self._dot(round(at) + 6 * i + cx, round(y) - 3 + cy, color)


LEFT, RIGHT, TOP, BOTTOM = 84, 24, 54, 46


class _Chart:
    def __init__(self, title: str, x_most: float, y_most: float, x_low: float = 0) -> None:
        self.p = Picture()
        self.x_low, self.x_most, self.y_most = x_low, x_most if x_most > x_low else x_low + 1, y_most or 1
        self.p.text(LEFT, 16, title)
        self.legend = LEFT

    def at(self, x: float, y: float) -> Tuple[float, float]:
        p = self.p
        return (LEFT + (p.width - LEFT - RIGHT) * (x - self.x_low) / (self.x_most - self.x_low),
                p.height - BOTTOM - (p.height - TOP - BOTTOM) * y / self.y_most)

    def axes(self, x_label: str, x_unit: float, y_label: str, y_unit: float) -> None:
        for axis, low, most, unit in (("y", 0.0, self.y_most, y_unit), ("x", self.x_low, self.x_most, x_unit)):
            step = nice((most - low) / unit / 6) * unit
            n = int(low / step)
            while n * step <= most * (1 + 1e-9):
                v = n * step
                n += 1
                if v < low - 1e-9:
                    continue
                word = "%g" % round(v / unit, 6)
                if axis == "y":
                    self.p.line([self.at(self.x_low, v), self.at(self.x_most, v)], GRID, 1)
                    self.p.text(LEFT - 8, self.at(0, v)[1], word, anchor="end")
                else:
                    self.p.text(self.at(v, 0)[0], self.p.height - BOTTOM + 14, word, anchor="middle")
        self.p.text(self.p.width - RIGHT, self.p.height - 12, x_label, anchor="end")
        self.p.text(8, TOP - 14, y_label)

    def name(self, words: str, color: Color) -> None:
        self.p.line([(self.legend, 34), (self.legend + 22, 34)], color, 3)
        self.p.text(self.legend + 28, 34, words)
        self.legend += 28 + 6 * len(words) + 26


def nice(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least the step."""
    power = 1.0
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    return next((m * power for m in (1, 2, 5, 10) if m * power >= step), 10 * power)


def draw(trace: Trace, plans: Union[None, Plan, Sequence[Plan]], out: Path, title: Optional[str] = None) -> None:
    """Memory over the iteration's time: the program as it is, as an area, and each plan, as a line; its limit is a thin one."""
    plans = [plans] if isinstance(plans, Plan) else list(plans or [])
    runs = [simulate(trace, p, 0) for p in plans]
    for p, r in zip(plans, runs):
        if not r.ok and not r.ns:
            raise ValueError("plan of %s: %s" % (p.solver or "?", r.error))
    live = trace.live_bytes()
    ends: List[float] = []
    for o in trace.ops:
        ends.append((ends[-1] if ends else 0.0) + o.ns)
    c = _Chart(title or "%s: memory over one iteration" % (trace.meta.get("model") or "trace"), max([*ends[-1:], *(r.ns for r in runs)], default=1.0),
               1.05 * max([trace.peak_bytes, *(r.peak_bytes for r in runs)]))
    steps = [c.at(t, m) for i, m in enumerate(live) for t in ((ends[i - 1] if i else 0.0), ends[i])]
    c.p.area(steps, c.at(0, 0)[1], (214, 219, 226))
    unit, word = (2.0 ** 30, "GiB") if trace.peak_bytes >= 2 ** 30 else (2.0 ** 20, "MiB")
    most = c.x_most
    x_unit, x_word = (1e9, "s") if most >= 2e9 else (1e6, "ms") if most >= 2e6 else (1e3, "us")
    c.axes("time, " + x_word, x_unit, word, unit)
    c.name("as it is", (150, 157, 168))
    for k, (p, r) in enumerate(zip(plans, runs)):
        color, before, line = COLORS[k % len(COLORS)], 0.0, []
        for m, t in zip(r.use_bytes, r.clock_ns):
            line += [c.at(before, m), c.at(t, m)]
            before = t
        c.p.line(line, color, 2)
        if p.limit_bytes:
            c.p.line([c.at(0, p.limit_bytes), c.at(most, p.limit_bytes)], color, 1)
        c.name("%s +%.1f %%" % ((p.solver or "plan")[:24], 100 * r.overhead), color)
    c.p.save(out)


def draw_sweep(rows: Sequence[Any], out: Path, title: str = "overhead over the limit") -> None:
    """Rows of remat.sweep as a line a solver: overhead in per cent over the limit."""
    good = [r for r in rows if r.feasible]
    limits = [r.limit_bytes for r in rows] or [0]
    unit, word = (2.0 ** 30, "GiB") if max(limits) >= 2 ** 30 else (2.0 ** 20, "MiB")
    c = _Chart(title, max(limits), 1.05 * max((100 * r.overhead for r in good), default=1.0), min(limits))
    c.axes("limit, " + word, unit, "overhead, %", 1)
    for k, name in enumerate(dict.fromkeys(r.solver for r in rows)):
        line = sorted((r.limit_bytes, 100 * r.overhead) for r in good if r.solver == name)
        color = COLORS[k % len(COLORS)]
        c.p.line([c.at(*p) for p in line], color, 2)
        for p in line:
            x, y = c.at(*p)
            c.p.line([(x - 3, y), (x + 3, y)], color, 5)
        c.name(name[:24], color)
    c.p.save(out)
