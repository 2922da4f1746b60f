#!/usr/bin/env python3
"""What operators get: `remat status --listen` answers as an HTTP server should, to kind clients and others; the dashboard and the alerts name no metric that there is
not; the Kubernetes manifests have no field that Kubernetes does not know, hang together, and their containers do what they say. Prometheus itself scrapes the
exporter in packages/test_prometheus.py, and Kubernetes' own schemas judge the manifests in packages/test_kubernetes.sh."""
import copy
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness as h

check = h.Checks()
TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PACKAGE = os.path.join(TOP, "offline", "package")


# ---- the endpoint -----------------------------------------------------------------------------------------------------------


def ask(port, request, timeout=30):
    """(status line, headers, body) of what the server answers to these bytes; None: it closed without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        s.sendall(request)
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    if not got:
        return None
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}
    return lines[0], headers, body


def get(port, path="/metrics", method="GET", more=""):
    return ask(port, ("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (method, path, more)).encode())


def endpoint(env):
    server = subprocess.Popen([h.REMAT, "status", "--listen", "0"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    silent = []
    try:
        m = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/metrics\n", server.stdout.readline())
        if not check.ok(m is not None, "it says where it listens, on this machine alone"):
            return
        port = int(m.group(1))
        plain = subprocess.run([h.REMAT, "status", "--prometheus"], env=env, capture_output=True).stdout
        line, headers, body = get(port)
        check.ok(line == "HTTP/1.1 200 OK" and body == plain and b"remat_in_use_bytes" in plain, "what --prometheus prints", line)
        check.ok(headers["content-type"].startswith("text/plain; version=0.0.4") and int(headers["content-length"]) == len(body), "its type and length", str(headers))
        check.ok(get(port, "/metrics?a=b")[2] == plain, "a query is no other page")
        line, headers, body = get(port, method="HEAD")
        check.ok(line.endswith("200 OK") and body == b"" and int(headers["content-length"]) == len(plain), "HEAD has no body", str(headers))
        for path, method, code in (("/", "GET", 200), ("/other", "GET", 404), ("/metrics/../etc/passwd", "GET", 404), ("/metrics", "POST", 405), ("metrics", "GET", 400)):
            check.ok(get(port, path, method)[0].split()[1] == str(code), "%s %s: %d" % (method, path, code))
        for bytes_, code in ((b"\r\n\r\n", 400), (b"GET /metrics\r\n\r\n", 400), (b"\xff\xfe\r\n\r\n", 400), (b"GET /metrics SMTP\r\n\r\n", 400), (b"GET / HTTP/1.1\0\r\n\r\n", 431),
                             (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", 431)):
            try:
                check.ok(ask(port, bytes_)[0].split()[1] == str(code), "%r: %d" % (bytes_[:20], code))
            except ConnectionResetError:  # it closes with bytes unread: those of a request that is too long
                check.ok(code == 431, "%r: reset" % bytes_[:20])
        # clients that say nothing, as many as there is room for, keep nobody out for longer than five seconds
        for _ in range(32):
            silent.append(socket.create_connection(("127.0.0.1", port), 30))
        silent[0].sendall(b"GET /met")
        began = time.monotonic()
        check.ok(get(port)[2] == plain and 1 < time.monotonic() - began < 25, "silent clients are parted with", "%.1f s" % (time.monotonic() - began))
        check.ok(silent[0].recv(10) == b"", "without an answer")
        # one that goes away in the midst, and one that reads nothing
        s = socket.create_connection(("127.0.0.1", port), 30)
        s.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        s.close()
        check.ok(get(port)[2] == plain, "a client that does not wait")
        p = subprocess.run([h.REMAT, "status", "--listen", str(port)], env=env, capture_output=True, text=True)
        check.ok(p.returncode == 1 and "Address already in use" in p.stderr and p.stderr.count("\n") == 1, "a port that is taken", p.stderr)
        server.send_signal(signal.SIGTERM)
        check.ok(server.wait(30) == 0, "SIGTERM ends it, with 0: it may be a container's first process")
    finally:
        for s in silent:
            s.close()
        server.kill()
        server.wait()


# ---- dashboard and alerts ---------------------------------------------------------------------------------------------------


def page(*path):
    with open(os.path.join(PACKAGE, *path), encoding="utf-8") as f:
        return f.read()


def dashboard(env):
    """Each metric that is asked for exists, and each that exists is shown, or asked for by an alert."""
    there = set(re.findall(r"^# TYPE (\S+)", subprocess.run([h.REMAT, "status", "--prometheus"], env=env, capture_output=True, text=True).stdout, re.M))
    board = json.loads(page("prometheus", "dashboard.json"))
    exprs = [t["expr"] for p in board["panels"] for t in p["targets"]]
    check.ok(len(exprs) >= 15 and len({p["id"] for p in board["panels"]}) == len(board["panels"]), "panels, each with a number of its own")
    check.ok(all(p["title"] and 0 <= p["gridPos"]["x"] and p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in board["panels"]), "on the grid")
    named = set()
    for text in exprs + [v["definition"] for v in board["templating"]["list"] if "definition" in v] + [page("prometheus", "alerts.yml")]:
        names = set(re.findall(r"\bremat_\w+", text))
        check.ok(names <= there, "no metric that there is not", "%s: %s" % (text[:200], names - there))
        named |= names
    check.ok(there <= named, "each metric is looked at somewhere", str(there - named))
    variables = {v["name"] for v in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board))) - {"__all", "__rate_interval"}
    check.ok(used == variables, "its variables", "%s %s" % (used, variables))


# ---- Kubernetes -------------------------------------------------------------------------------------------------------------

# The fields that the manifests use, as Kubernetes' API has them: a dict's keys are all that may stand there, "!" at the end: has to. [x]: a list of such; {str: x}: any
# keys.
STR, INT, BOOL = str, int, bool
MAP = {str: STR}
META = {"name!": STR, "namespace": STR, "labels": MAP, "annotations": MAP}
SECURITY = {"runAsUser": INT, "allowPrivilegeEscalation": BOOL, "readOnlyRootFilesystem": BOOL, "capabilities": {"drop": [STR], "add": [STR]}}
CONTAINER = {"name!": STR, "image!": STR, "command": [STR], "args": [STR], "env": [{"name!": STR, "value": STR}], "volumeMounts": [{"name!": STR, "mountPath!": STR, "readOnly": BOOL}],
             "securityContext": SECURITY, "ports": [{"name": STR, "containerPort!": INT, "protocol": STR}],
             "livenessProbe": {"httpGet": {"path": STR, "port!": (STR, INT)}, "periodSeconds": INT},
             "resources": {"requests": {str: (STR, INT)}, "limits": {str: (STR, INT)}}}
POD = {"containers!": [CONTAINER], "initContainers": [CONTAINER], "restartPolicy": STR, "hostPID": BOOL, "automountServiceAccountToken": BOOL, "nodeSelector": MAP,
       "tolerations": [{"key": STR, "operator": STR, "value": STR, "effect": STR}], "securityContext": {"runAsUser": INT, "fsGroup": INT},
       "volumes": [{"name!": STR, "emptyDir": {}, "hostPath": {"path!": STR, "type": STR}}]}
TEMPLATE = {"metadata": {"labels": MAP, "annotations": MAP}, "spec!": POD}
KINDS = {("v1", "Namespace"): {}, ("v1", "ConfigMap"): {"data": MAP},
         ("apps/v1", "DaemonSet"): {"spec!": {"selector!": {"matchLabels": MAP}, "template!": TEMPLATE}},
         ("batch/v1", "Job"): {"spec!": {"completions": INT, "parallelism": INT, "completionMode": STR, "backoffLimit": INT, "template!": TEMPLATE}}}


def faults_of(value, schema, at):
    if schema in (STR, INT, BOOL) or isinstance(schema, tuple):
        fits = isinstance(value, schema) and not (isinstance(value, bool) and schema is not BOOL)
        return [] if fits else ["%s: %r" % (at, value)]
    if isinstance(schema, list):
        return ["%s: no list" % at] if not isinstance(value, list) else [x for i, v in enumerate(value) for x in faults_of(v, schema[0], "%s[%d]" % (at, i))]
    if not isinstance(value, dict):
        return ["%s: no map" % at]
    if str in schema:
        return [x for k, v in value.items() for x in faults_of(v, schema[str], "%s.%s" % (at, k))]
    fields = {k.rstrip("!"): s for k, s in schema.items()}
    out = ["%s: no field %s" % (at, k) for k in schema if k.endswith("!") and k[:-1] not in value]
    for k, v in value.items():
        out += faults_of(v, fields[k], "%s.%s" % (at, k)) if k in fields else ["%s: Kubernetes knows no field %s" % (at, k)]
    return out


def faults(doc):
    """What Kubernetes would refuse, and what would not hang together."""
    kind = doc.get("apiVersion"), doc.get("kind")
    if kind not in KINDS:
        return ["%s %s" % kind]
    out = faults_of(doc, dict(KINDS[kind], **{"apiVersion!": STR, "kind!": STR, "metadata!": META}), doc["kind"])
    template = doc.get("spec", {}).get("template", {})
    spec = template.get("spec", {})
    if out or not spec:
        return out
    if "selector" in doc["spec"] and not doc["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items():
        out.append("the selector is of other pods")
    if doc["kind"] == "Job" and spec.get("restartPolicy") not in ("Never", "OnFailure"):
        out.append("a Job's pods are restarted Never or OnFailure")
    volumes, names = {v["name"] for v in spec.get("volumes", [])}, [c["name"] for c in spec["containers"] + spec.get("initContainers", [])]
    if len(set(names)) < len(names):
        out.append("two containers of one name")
    for c in spec["containers"] + spec.get("initContainers", []):
        out += ["%s: no volume %s" % (c["name"], m["name"]) for m in c.get("volumeMounts", []) if m["name"] not in volumes]
        port = c.get("livenessProbe", {}).get("httpGet", {}).get("port")
        if isinstance(port, str) and port not in [p.get("name") for p in c.get("ports", [])]:
            out.append("%s: no port %s" % (c["name"], port))
        if port and "prometheus.io/port" in template["metadata"].get("annotations", {}):
            out += [] if int(template["metadata"]["annotations"]["prometheus.io/port"]) in [p["containerPort"] for p in c["ports"]] else ["Prometheus is sent to another port"]
        known = {e["name"] for e in c.get("env", [])}
        out += ["%s: $(%s) is not set" % (c["name"], v) for w in c.get("command", []) for v in re.findall(r"\$\((\w+)\)", w) if v not in known]
    return out


def spoil(doc, path, value):
    """The manifest with one thing wrong in it. None: the field is taken away; a name that ends with ~ is misspelt."""
    doc = copy.deepcopy(doc)
    at = doc
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return doc


def run_container(tmp, env, c, extra=()):
    """A container's command, its image's /opt/remat and its mounts below tmp."""
    vars_ = {e["name"]: e["value"] for e in c.get("env", [])}
    words = [re.sub(r"\$\((\w+)\)", lambda m: vars_[m.group(1)], w) for w in c["command"]]
    words = [re.sub(r"(?<![\w.])(/opt/remat|/run/remat|/remat)(?=[/; ]|$)", lambda m: tmp + m.group(1), w) for w in words]
    return subprocess.run(words + list(extra), env=dict(env, **vars_), cwd=tmp, capture_output=True, text=True, timeout=280)


def manifests(env):
    try:
        import yaml
    except ImportError:
        print("no python3-yaml: the manifests are not looked at")
        return
    docs = {}
    folder = os.path.join(PACKAGE, "kubernetes")
    for name in sorted(os.listdir(folder)):
        for doc in yaml.safe_load_all(page("kubernetes", name)):
            docs[doc["kind"]] = doc
            check.ok(not faults(doc), "%s, %s" % (name, doc["kind"]), str(faults(doc)))
    check.ok(set(docs) == {"Namespace", "ConfigMap", "DaemonSet", "Job"}, "all of them", str(set(docs)))
    # the check itself: each fault is found
    node, job = docs["DaemonSet"], docs["Job"]
    pod = ["spec", "template", "spec"]
    for doc, path, value in ((node, ["spec", "selector", "matchLabels", "app.kubernetes.io/name"], "x"), (node, pod + ["hostPid"], True), (node, pod + ["hostPID"], "yes"),
                             (node, pod + ["containers", 0, "image"], None), (node, pod + ["containers", 0, "livenessProbe", "httpGet", "port"], "metric"),
                             (node, pod + ["volumes"], []), (node, ["spec", "template", "metadata", "annotations", "prometheus.io/port"], "9838"), (job, pod + ["restartPolicy"], None),
                             (job, pod + ["containers", 0, "env", 0, "name"], "TEAM"), (job, ["spec", "completions"], "2"), (job, ["apiVersion"], "v1")):
        check.ok(bool(faults(spoil(doc, path, value))), "found: %s" % path)
    sharing = yaml.safe_load(docs["ConfigMap"]["data"]["config.yaml"])
    check.ok(sharing["version"] == "v1" and [r["name"] for r in sharing["sharing"]["timeSlicing"]["resources"]] == ["nvidia.com/gpu"] and
             all(r["replicas"] > 1 for r in sharing["sharing"]["timeSlicing"]["resources"]), "time slicing", str(sharing))

    with tempfile.TemporaryDirectory() as tmp:
        bin_ = os.path.join(tmp, "bin")
        os.makedirs(bin_)
        os.makedirs(os.path.join(tmp, "run", "remat"))
        os.mkdir(os.path.join(tmp, "remat"))
        with open(os.path.join(bin_, "python"), "w") as f:
            f.write('#!/bin/sh\nexec "%s/workloads/mlp" --iters 4 --batch 64 --layers 2\n' % h.B)
        os.chmod(os.path.join(bin_, "python"), 0o755)
        env = dict(env, PATH=bin_ + ":" + env["PATH"], REMAT_GROUP_DIR=os.path.join(tmp, "groups"))
        os.mkdir(env["REMAT_GROUP_DIR"], 0o700)
        subprocess.run(["make", "-C", TOP, "-s", "B=" + h.B, "install", "PREFIX=/opt/remat", "DESTDIR=" + tmp], env=env, check=True, stdout=subprocess.DEVNULL)
        os.symlink(os.path.join(h.B, "simgpu"), os.path.join(tmp, "opt", "remat", "bin", "simgpu"))  # a driver for it
        spec = job["spec"]["template"]["spec"]
        for c in spec["initContainers"] + spec["containers"]:
            p = run_container(tmp, env, c)
            check.ok(p.returncode == 0, "container %s" % c["name"], p.stderr[-600:])
        check.ok(len(os.listdir(env["REMAT_GROUP_DIR"])) == 1 and os.listdir(env["REMAT_GROUP_DIR"])[0].startswith("train@"), "in the group", str(os.listdir(env["REMAT_GROUP_DIR"])))
        spec = node["spec"]["template"]["spec"]
        if os.getuid() == 0:
            p = run_container(tmp, env, spec["initContainers"][0])
            made = {u: os.stat(os.path.join(tmp, "run", "remat", u)) for u in ("0", "1000")} if p.returncode == 0 else {}
            check.ok(all(s.st_uid == int(u) and s.st_mode & 0o777 == 0o700 for u, s in made.items()) and made, "the users' folders", p.stderr)
        command = spec["containers"][0]["command"]
        check.ok(command[:3] == ["remat", "status", "--listen"] and command[3] == ":%d" % spec["containers"][0]["ports"][0]["containerPort"], "the exporter", str(command))


def main():
    if os.environ.get("SAN"):
        print("tried in ordinary builds")
        return 77
    with tempfile.TemporaryDirectory(prefix="remat-operators-") as tmp:
        os.mkdir(os.path.join(tmp, "status"), 0o700)
        env = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_MEM="512M", XDG_CACHE_HOME=tmp, REMAT_STATUS_DIR=os.path.join(tmp, "status"), REMAT_GROUP_DIR=os.path.join(tmp, "none"))
        for name in ("LD_PRELOAD", "REMAT_LIMIT", "REMAT_RUN_STARTED"):
            env.pop(name, None)
        endpoint(env)
        dashboard(env)
        manifests(env)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
