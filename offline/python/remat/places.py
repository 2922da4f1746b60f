"""JSON files with the place of every complaint: FILE:LINE:COLUMN: PATH: what is wrong.

Python's json tells the place of a syntax error and forgets that of the values. A Document keeps the text and walks it again once something
is wrong with a value. Compressed files (gzip, xz, zstd) are read as they are, as the command reads them.
"""
from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Set, Tuple, Union

Step = Union[str, int]
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
DEPTH_MOST = 2048


class BadFile(ValueError):
    """A file that is not what it should be. The text is one line; file, line and column are there too (0: unknown)."""

    def __init__(self, file: str, line: int, column: int, what: str) -> None:
        self.file, self.line, self.column, self.what = file, line, column, what
        place = "%s:%d:%d" % (file, line, column) if line else file
        super().__init__("%s: %s" % (place, re.sub(r"[\x00-\x1f\x7f]", " ", what)))


def read_bytes(path: Union[str, "os.PathLike[str]"]) -> bytes:
    """A file's bytes, uncompressed; "-" is standard input."""
    name = os.fspath(path)
    try:
        if name == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as f:
                data = f.read()
    except OSError as e:
        raise BadFile(name, 0, 0, "cannot open: %s" % e.strerror) from None
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:6] == b"\xfd7zXZ\0":
            return lzma.decompress(data)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            if not shutil.which("zstd"):
                raise BadFile(name, 0, 0, "is compressed, and there is no zstd to read it with")
            out: bytes = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
            return out
    except (OSError, EOFError, lzma.LZMAError, subprocess.CalledProcessError):
        raise BadFile(name, 0, 0, "is compressed, and cannot be read: damaged?") from None
    return data


class Document:
    """A parsed JSON text. `root` is its value; `bad(path, what)` raises BadFile with the place of the value at path."""

    def __init__(self, text: Union[bytes, str], name: str = "text") -> None:
        self.name = name
        if isinstance(text, bytes):
            data = text
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as e:
                before = data[:e.start]
                raise BadFile(name, before.count(b"\n") + 1, e.start - (before.rfind(b"\n") + 1) + 1,
                              "unable to decode byte 0x%02x" % data[e.start]) from None
        self.text = text
        if not text:
            raise BadFile(name, 1, 1, "is empty")
        try:
            self.root: Any = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError):
            self._syntax()
            raise BadFile(name, 1, 1, "is no JSON that can be read") from None

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Document":
        name = os.fspath(path)
        return cls(read_bytes(path), "standard input" if name == "-" else name)

    def at(self, offset: int, what: str) -> NoReturn:
        offset = min(offset, len(self.text))
        raise BadFile(self.name, self.text.count("\n", 0, offset) + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1, what)

    def bad(self, path: Sequence[Any], what: str) -> NoReturn:
        """The place is that of the deepest value of the path that exists."""
        at = self._space(0)
        for step in path:
            inner = self._into(at, step)
            if inner is None:
                break
            at = inner
        where = "".join("[%d]" % s if isinstance(s, int) else ("." if i else "") + s for i, s in enumerate(path))
        self.at(at, where + ": " + what if where else what)

    def object(self, what: str) -> Dict[str, Any]:
        """The root, which is to be a JSON object; `what` names the file's kind, with its article."""
        if not isinstance(self.root, dict):
            self.bad([], what + " is a JSON object")
        return self.root

    def instance(self, wanted: str) -> Dict[str, Any]:
        """The root of an instance of the literature, whose format is to be `wanted`."""
        root = self.object("an instance")
        if self.kind(root, [], "format", str, "a string", need=True) != wanted:
            self.bad(["format"], 'is "%.40s", where "%s" is wanted' % (root["format"], wanted))
        return root

    # ---- typed look-ups: obj is the value at path ----

    def integer(self, obj: Any, path: Sequence[Any], key: str, low: int, high: int, default: Optional[int] = None, need: bool = False) -> Optional[int]:
        v = obj.get(key)
        if v is None:
            if need:
                self.bad([*path, key], "missing")
            return default
        n = whole(v)
        if n is None:
            self.bad([*path, key], "must be a whole number")
        if not low <= n <= high:
            self.bad([*path, key], "must be between %d and %d" % (low, high))
        return n

    def kind(self, obj: Any, path: Sequence[Any], key: str, kind: type, what: str, need: bool = False) -> Any:
        v = obj.get(key)
        if v is None:
            if need:
                self.bad([*path, key], "missing")
            return None
        if not isinstance(v, kind):
            self.bad([*path, key], "must be " + what)
        return v

    # ---- walking the text ----

    def _space(self, at: int) -> int:
        m = _SPACE.match(self.text, at)
        return m.end() if m else at

    def _skip(self, at: int) -> int:
        """Past one value of a text that is known to be JSON."""
        depth, text = 0, self.text
        while at < len(text):
            c = text[at]
            if c == '"':
                m = _STRING.match(text, at)
                at = m.end() if m else at + 1
                if not depth:
                    return at
                continue
            if c in "{[":
                depth += 1
            elif c in "}]":
                if not depth:
                    return at
                depth -= 1
                if not depth:
                    return at + 1
            elif not depth and c in ", \t\r\n":
                return at
            at += 1
        return at

    def _into(self, at: int, step: Step) -> Optional[int]:
        text = self.text
        if at >= len(text) or text[at] != ("{" if isinstance(step, str) else "["):
            return None
        at, i = self._space(at + 1), 0
        while at < len(text) and text[at] not in "}]":
            if isinstance(step, str):
                end = self._skip(at)
                same = json.loads(text[at:end]) == step
                at = self._space(self._space(end) + 1)
                if same:
                    return at
            elif i == step:
                return at
            i += 1
            at = self._space(self._skip(at))
            if at < len(text) and text[at] == ",":
                at = self._space(at + 1)
        return None

    def _syntax(self) -> None:
        """Find what json.loads disliked: syntax, duplicate keys, numbers that are none, nesting."""
        text, at = self.text, 0
        stack: List[Tuple[str, Set[str]]] = []
        want = "value"
        while True:
            at = self._space(at)
            c = text[at:at + 1]
            if want == "end":
                if c:
                    self.at(at, "end of file expected")
                return
            if want in ("value", "value or ]"):
                if c == "]" and want == "value or ]":
                    stack.pop()
                    at += 1
                elif c in ("{", "[") and c:
                    if len(stack) >= DEPTH_MOST:
                        self.at(at, "nested too deep")
                    stack.append((c, set()))
                    at += 1
                    want = "key or }" if c == "{" else "value or ]"
                    continue
                else:
                    m = _STRING.match(text, at) if c == '"' else _SCALAR.match(text, at)
                    if not m:
                        self.at(at, "a value is expected here" if c else "the file ends where a value is expected")
                    if c != '"' and m.group() not in ("true", "false", "null") and abs(float(m.group())) == float("inf"):
                        self.at(at, "a number too large")
                    at = m.end()
            elif want in ("key", "key or }"):
                if c == "}" and want == "key or }":
                    stack.pop()
                    at += 1
                else:
                    m = _STRING.match(text, at)
                    if not m:
                        self.at(at, "a key is expected here" if c else "the file ends where a key is expected")
                    key = json.loads(m.group())
                    if key in stack[-1][1]:
                        self.at(at, 'the key "%s" stands here twice' % key)
                    stack[-1][1].add(key)
                    at = self._space(m.end())
                    if text[at:at + 1] != ":":
                        self.at(at, "a colon is expected here")
                    at, want = at + 1, "value"
                    continue
            elif c == ",":
                at, want = at + 1, "key" if stack[-1][0] == "{" else "value"
                continue
            elif c and c == ("}" if stack[-1][0] == "{" else "]"):
                stack.pop()
                at += 1
            else:
                self.at(at, "a comma or an end is expected here" if c else "the file ends too early")
            want = "comma" if stack else "end"


def whole(v: Any) -> Optional[int]:
    """A whole number, which may be written as a real below 2^53; None: it is none."""
    if isinstance(v, bool):
        return None
    if isinstance(v, int):
        return v
    if isinstance(v, float) and abs(v) <= 2.0 ** 53 and v == int(v):
        return int(v)
    return None


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate key")
    return out


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(word: str) -> float:
    v = float(word)
    if abs(v) == float("inf"):
        raise ValueError(word)
    return v
