"""A page in headless Chromium, looked at and used as a person would: through Chromium's own remote control, over a pipe. Sizes and
schemes are those asked for (a window has a least width, an emulated device has none), keys and the pointer are real events."""
import json
import os
import select
import shutil
import subprocess
import time

WAIT = 120  # seconds, for something that takes one on a quiet machine


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One Chromium with one page. `console`: what it said there, and errors that nobody caught; `fetched`: addresses asked for."""

    def __init__(self, profile):
        to_child, from_me = os.pipe()
        to_me, from_child = os.pipe()
        cmd = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--disable-background-networking",
               "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"]

        def wires(): # Chromium reads from 3 and writes to 4; the ends may lie there already
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)
        os.set_inheritable(to_child, True)
        os.set_inheritable(from_child, True)
        self.p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wires,
                                  close_fds=False)
        os.close(to_child)
        os.close(from_child)
        self.out, self.in_, self.rest, self.n = from_me, to_me, b"", 0
        self.console, self.fetched, self.events, self.session = [], [], [], None
        target = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"][0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        os.close(self.out)
        os.close(self.in_)

    # ---- the wire: objects of JSON, a zero byte after each

    def receive(self, end):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.in_], [], [], left)[0]:
                raise RuntimeError("Chromium does not answer")
            piece = os.read(self.in_, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium is gone")
            self.rest += piece
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + WAIT
        while True:
            got = self.receive(end)
            if got.get("id") == self.n:
                if "error" in got:
                    raise RuntimeError("%s: %s" % (method, got["error"]))
                return got["result"]
            self.note(got)

    def note(self, event):
        kind, p = event.get("method"), event.get("params", {})
        if kind == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif kind == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.console.append(d.get("exception", {}).get("description") or d["text"])
        elif kind == "Log.entryAdded":
            self.console.append(p["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.fetched.append(p["request"]["url"])
        elif kind == "Page.loadEventFired":
            self.events.append("load")

    # ---- what a person does

    def look(self, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.console, self.fetched, self.events = [], [], []
        self.call("Page.navigate", url=url)
        end = time.monotonic() + WAIT
        while "load" not in self.events:
            self.note(self.receive(end))
        self.ask("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))")

    def ask(self, expression):
        """What the page answers, as JSON has it."""
        r = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", str(r)))
        return r["result"].get("value")

    CODES = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32}

    def press(self, *keys):
        for key in keys:
            more = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            code = {"windowsVirtualKeyCode": self.CODES.get(key, ord(key.upper()[0]))}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more, **code)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def point(self, x, y, click=False):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for what in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=what, x=x, y=y, button="left", clickCount=1)

    def picture(self, path, whole=True):
        import base64
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))
