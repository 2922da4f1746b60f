#!/usr/bin/env bash
# The Kubernetes manifests against Kubernetes' own schemas, as PyPI's kubernetes-validate has them (got once, into the build folder); and that it would say no.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=$(cd "${B:-$here/../../build}" && pwd)
. "$here/../conformance/env.sh"
manifests=$here/../../offline/package/kubernetes
validate=$B/kubernetes/bin/kubernetes-validate
if [ ! -x "$validate" ]; then
    rm -rf "$B/kubernetes"
    python3 -m venv "$B/kubernetes" && "$B/kubernetes/bin/pip" install -q --disable-pip-version-check kubernetes-validate==1.37.0 >"$B/kubernetes.log" 2>&1 ||
        { rm -rf "$B/kubernetes"; echo "kubernetes-validate cannot be installed"; exit 77; }
fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
for version in 1.29 1.37; do
    "$validate" --strict -k $version "$manifests"/*.yaml >"$tmp/out" 2>&1 || fail "Kubernetes $version: $(grep -v passed "$tmp/out")"
    [ "$(grep -c passed "$tmp/out")" = "$(grep -h '^kind:' "$manifests"/*.yaml | wc -l)" ] || fail "Kubernetes $version: not all were looked at: $(cat "$tmp/out")"
done
sed 's/hostPID: true/hostPid: true/' "$manifests/node.yaml" >"$tmp/node.yaml"
"$validate" --strict "$tmp/node.yaml" >"$tmp/out" 2>&1 && fail "a misspelt field is not found"
sed 's/replicas: 4/&\n  x: 1/; s/^data:/dada:/' "$manifests/time-slicing.yaml" >"$tmp/node.yaml"
"$validate" --strict "$tmp/node.yaml" >"$tmp/out" 2>&1 && fail "nor another one"
exit "$failed"
