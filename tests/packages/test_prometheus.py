#!/usr/bin/env python3
"""Prometheus itself (Debian's package, unpacked below the build folder where it is not installed) scrapes `remat status --listen` with the configuration that comes along:
counters of two training runs arrive and grow, each expression of the dashboard and of the alerts has an answer, and what DCGM's exporter tells of the same GPU joins on
UUID. promtool judges the metrics, the configuration and the alerts. Exit 77: no Prometheus, and it cannot be had."""
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "system"))
import harness as h  # noqa: E402

check = h.Checks()
KIT = os.path.join(TOP, "offline", "package", "prometheus")
B = os.path.abspath(h.B)
UUID = "GPU-73696d75-6c61-7465-6420-475055203000"
# what dcgm-exporter prints of a GPU, with its labels
DCGM = ('# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).\n# TYPE DCGM_FI_DEV_FB_USED gauge\n'
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="%s",device="nvidia0",modelName="NVIDIA H200",Hostname="x"} 128\n' % UUID)


def tools():
    """Paths of prometheus and promtool; None: they cannot be had."""
    names = "prometheus", "promtool"
    if all(shutil.which(n) for n in names):
        return [shutil.which(n) for n in names]
    kept = os.path.join(B, "prometheus")
    found = [os.path.join(kept, "usr", "bin", n) for n in names]
    if not all(os.path.exists(f) for f in found) and shutil.which("apt-get") and shutil.which("dpkg"):
        with tempfile.TemporaryDirectory() as tmp:
            got = subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=tmp, capture_output=True)
            for f in os.listdir(tmp) if got.returncode == 0 else []:
                subprocess.run(["dpkg", "-x", os.path.join(tmp, f), kept], check=True)
    return found if all(os.path.exists(f) for f in found) else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, tries=600):
    for _ in range(tries):
        got = what()
        if got:
            return got
        time.sleep(0.1)
    return None


def api(port, path, **query):
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s?%s" % (port, path, urllib.parse.urlencode(query)), timeout=30) as r:
            return json.load(r)["data"]
    except urllib.error.HTTPError as e:
        return {"error": e.read().decode()}
    except OSError:
        return None


def series(port, expr):
    """{labels that tell series apart: value}; None: no answer."""
    got = api(port, "query", query=expr)
    return None if not got or "error" in got else {tuple(sorted(r["metric"].items())): float(r["value"][1]) for r in got["result"]}


def total(port, expr):
    return sum((series(port, expr) or {}).values())


class Dcgm(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(DCGM.encode())

    def log_message(self, *_):
        pass


def judged(promtool, tmp, env):
    text = subprocess.run([h.REMAT, "status", "--prometheus"], env=env, capture_output=True).stdout
    p = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
    check.ok(p.returncode == 0 and not p.stderr + p.stdout, "promtool finds no fault with the metrics", str(p.stderr + p.stdout))
    p = subprocess.run([promtool, "check", "config", os.path.join(KIT, "prometheus.yml")], capture_output=True, text=True)
    check.ok(p.returncode == 0 and "4 rules found" in p.stdout, "nor with the configuration and the alerts", p.stdout + p.stderr)


def questions(port):
    """Each expression of the dashboard has an answer."""
    with open(os.path.join(KIT, "dashboard.json"), encoding="utf-8") as f:
        board = json.load(f)
    n = 0
    for p in board["panels"]:
        for t in p["targets"]:
            expr = re.sub(r"\$\{?(user|host)\}?", ".*", t["expr"]).replace("$__rate_interval", "10s")
            got = wait_for(lambda: series(port, expr), 100)
            check.ok(bool(got), "an answer: %s" % p["title"], "%s: %s" % (expr, api(port, "query", query=expr)))
            n += bool(got)
    both = series(port, "DCGM_FI_DEV_FB_USED * 1048576 / on (UUID) group_left max by (UUID) (remat_device_bytes)")
    check.ok(list((both or {}).values()) == [128 / 512], "DCGM's figures join on UUID", str(both))
    return n


def main():
    found = tools()
    if not found:
        print("no Prometheus, and it cannot be got: apt-get install prometheus")
        return 77
    prometheus, promtool = found
    tmp = tempfile.mkdtemp(prefix="remat-prometheus-")
    folders = {name: os.path.join(tmp, name) for name in ("status", "groups")}
    for f in folders.values():
        os.mkdir(f, 0o700)
    env = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_MEM="512M", XDG_CACHE_HOME=tmp, REMAT_STATUS_DIR=folders["status"], REMAT_GROUP_DIR=folders["groups"])
    mlp = [os.path.join(B, "workloads", "mlp"), "--iters", "1000000", "--batch", "4096", "--layers", "12"]
    running, dcgm = [], http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dcgm)
    threading.Thread(target=dcgm.serve_forever, daemon=True).start()
    try:
        for options in (["--policy", "plan", "--limit", "33M"], ["--policy", "swap", "--group", "team", "--group-limit", "40M"]):
            running.append(subprocess.Popen([h.REMAT, "run", *options, "--quiet", "--", *mlp], env=env, stdout=subprocess.DEVNULL))
        exporter = subprocess.Popen([h.REMAT, "status", "--listen", "0"], env=env, stdout=subprocess.PIPE, text=True)
        running.append(exporter)
        target = re.match(r"http://(\S+)/metrics", exporter.stdout.readline()).group(1)
        shutil.copytree(KIT, os.path.join(tmp, "kit"))
        with open(os.path.join(KIT, "prometheus.yml"), encoding="utf-8") as f:
            text = f.read().replace("127.0.0.1:9837", target).replace("15s", "1s") + "  - job_name: dcgm\n    static_configs:\n      - targets: [\"127.0.0.1:%d\"]\n" % dcgm.server_port
        with open(os.path.join(tmp, "kit", "prometheus.yml"), "w", encoding="utf-8") as f:
            f.write(text)
        port = free_port()
        with open(os.path.join(tmp, "log"), "w") as log:
            running.append(subprocess.Popen([prometheus, "--config.file", os.path.join(tmp, "kit", "prometheus.yml"), "--storage.tsdb.path", os.path.join(tmp, "data"),
                                             "--web.listen-address", "127.0.0.1:%d" % port], stdout=log, stderr=log))
        up = wait_for(lambda: total(port, "up") == 2)
        if not check.ok(bool(up), "both targets are up", str(api(port, "targets")) + open(os.path.join(tmp, "log")).read()[-600:]):
            return check.end()
        counters = ("remat_replays_total", "remat_swaps_out_total", "remat_swaps_in_total", "remat_comparisons_total", "remat_iterations_planned_total")
        check.ok(bool(wait_for(lambda: all(total(port, c) > 0 for c in counters))), "counters arrive", str([(c, total(port, c)) for c in counters]))
        check.ok(bool(wait_for(lambda: total(port, "increase(remat_comparisons_total[20s])") > 0 and total(port, "rate(remat_replays_total[20s])") > 0)), "and grow")
        check.ok((series(port, "remat_departures_total") or {None: 1}).keys() and total(port, "remat_comparisons_failed_total") == 0, "no comparison fails")
        labels = [dict(k) for k in series(port, "remat_in_use_bytes") or {}]
        check.ok(sorted(x["pid"] for x in labels) == sorted(str(p.pid) for p in running[:2]) and {x["UUID"] for x in labels} == {UUID}, "of two processes on one GPU", str(labels))
        n = questions(port)
        alerts = api(port, "rules")["groups"][0]["rules"]
        check.ok(len(alerts) == 4 and bool(wait_for(lambda: all(r["health"] == "ok" for r in api(port, "rules")["groups"][0]["rules"]), 700)), "alerts are evaluated", str(alerts))
        judged(promtool, tmp, env)
        print("scraped by %s; %d expressions answered" % (subprocess.run([prometheus, "--version"], capture_output=True, text=True).stdout.splitlines()[0], n))
    finally:
        for p in running:
            p.kill()
            p.wait()
        dcgm.shutdown()
        shutil.rmtree(tmp, ignore_errors=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
