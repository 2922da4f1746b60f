"""The graphs of MOCCASIN's public data set (networkx's node-link JSON with cost_cpu and cost_ram) as checkmate-v1.

    to_checkmate("data/segnet (MLSys)_32_(416, 608, 3)_train_nx.json", "70%")

The data set is licensed under the GPL and lies in its authors' repository, github.com/haoming-codes/moccasin; it is not part of remat. The given order
is the file's own where it has one, else by generations, as networkx sorts; an op's result is alive from the op to its last reader, and the budget is a share of that order's peak, rounded down.
"""
from __future__ import annotations

from typing import Any, Dict, List, Union

from ..places import Document
from ..trace import Path, parse_limit
from . import checkmate

# the names that the papers' tables have, and ours
FILES: Dict[str, str] = {
    "CM1": "fcn_8_vgg (MLSys)_32_(416, 608, 3)_train_nx.json", "RL1": "random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14.json",
    "RL2": "random_layered_n250_w0.43_nlv0.75_ed0.2_scd0.14.json", "VGG16": "VGG16 (MLSys)_256_(224, 224, 3)_train_nx.json",
    "VGG19": "VGG19 (MLSys)_256_(224, 224, 3)_train_nx.json", "segnet": "segnet (MLSys)_32_(416, 608, 3)_train_nx.json",
    "vggunet": "vgg_unet (MLSys)_32_(416, 608, 3)_train_nx.json",
}


def _is_link(x: Any, key: Dict[str, str], nodes: Dict[Any, Any]) -> bool:
    """Between two of the nodes."""
    return isinstance(x, dict) and all(isinstance(x.get(key[end]), (int, str)) and x[key[end]] in nodes for end in ("from", "to"))


def _by_generations(ids: List[Any], links: List[Any], key: Dict[str, str]) -> List[Any]:
    """First what has no inputs, then what has all of its inputs there, and so on."""
    users: Dict[Any, List[Any]] = {i: [] for i in ids}
    missing = {i: 0 for i in ids}
    for x in links:
        if _is_link(x, key, users):
            users[x[key["from"]]].append(x[key["to"]])
            missing[x[key["to"]]] += 1
    out: List[Any] = []
    now = [i for i in ids if not missing[i]]
    while now:
        after = []
        for i in now:
            out.append(i)
            for u in users[i]:
                missing[u] -= 1
                if not missing[u]:
                    after.append(u)
        now = after
    return out if len(out) == len(ids) else ids   # a cycle: a link will lead against the order


def to_checkmate(path: Path, limit: Union[str, int] = "100%") -> Dict[str, Any]:
    doc = Document.load(path)
    root = doc.root
    if not isinstance(root, dict):
        doc.bad([], "a graph is a JSON object")
    nodes = doc.kind(root, [], "nodes", list, "an array", need=True)
    links = doc.kind(root, [], "links", list, "an array", need=True)
    graph = doc.kind(root, [], "graph", dict, "an object") or {}
    # the random graphs name their keys themselves, and have an order of their own
    key = {"id": "name", "cost": "duration", "mem": "out_cost", "from": "0", "to": "1"} if "order" in graph else \
        {"id": "id", "cost": "cost_cpu", "mem": "cost_ram", "from": "source", "to": "target"}
    ids = []
    for i, x in enumerate(nodes):
        at = ["nodes", i]
        if not isinstance(x, dict):
            doc.bad(at, "a node is an object")
        name = x.get(key["id"])
        if isinstance(name, (list, dict)) or name is None or name in ids:
            doc.bad([*at, key["id"]], "a node has an %s of its own" % key["id"])
        ids.append(name)
    order = graph.get("order") or _by_generations(ids, links, key)
    if not isinstance(order, list) or len(order) != len(ids) or set(map(str, order)) != set(map(str, ids)):
        doc.bad(["graph", "order"], "must name each node once")
    place = {name: i for i, name in enumerate(order)}
    out: Dict[str, List[Any]] = {k: [0] * len(ids) for k in ("cost", "mem", "names")}
    for i, x in enumerate(nodes):
        k = place[ids[i]]
        out["cost"][k] = doc.integer(x, ["nodes", i], key["cost"], 0, 1 << 53, need=True)
        out["mem"][k] = doc.integer(x, ["nodes", i], key["mem"], 0, 1 << 53, need=True)
        out["names"][k] = str(x.get("name", ids[i]))
    edges = set()
    for i, x in enumerate(links):
        if not _is_link(x, key, place):
            doc.bad(["links", i], "a link is an object with %s and %s, two nodes' names" % (key["from"], key["to"]))
        u, v = place[x[key["from"]]], place[x[key["to"]]]
        if u >= v:
            doc.bad(["links", i], "leads from node %d to %d, against the given order" % (u, v))
        edges.add((u, v))
    inst: Dict[str, Any] = {"format": "checkmate-v1", "name": str(graph.get("name", "")), "n": len(nodes),
                            "edges": [list(e) for e in sorted(edges)], **out}
    inst["budget"] = parse_limit(limit, checkmate.peak_bytes(inst))
    return inst
