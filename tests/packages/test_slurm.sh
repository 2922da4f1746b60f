#!/usr/bin/env bash
# The scripts of docs/sharing.md under slurmctld and slurmd, with the simulated GPU: two jobs of four processes on one device, at the same time, each job
# within its share as a whole; one is cancelled while it runs, and the other one ends as it would alone. Needs root, and Slurm, which it installs where apt-get can.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=$(cd "${B:-$here/../../build}" && pwd)
. "$here/../conformance/env.sh"
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] && unshare -m -p -f true 2>/dev/null || { echo "needs root"; exit 77; }
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null 2>&1
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null || { echo "no Slurm, and it cannot be installed"; exit 77; }
    # all of its processes end with this one
    exec unshare -m -p -f --kill-child sh -c 'mount -t proc proc /proc && exec bash "$0" inside' "$here/test_slurm.sh"
fi
SHARE=60 # MiB
tmp=$(mktemp -d) && trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$tmp"' EXIT
cd "$tmp" && mkdir ctl spool jobs bin status && chmod 755 "$tmp" || exit 1
# the page's scripts, and python train.py as the docs' tests have it
awk '/^## Slurm/ {on = 1} on && /^```sh/ {in_block = 1; next} in_block && /^```/ {exit} in_block' "$here/../../docs/sharing.md" >scripts && . ./scripts
[ -x prolog ] && [ -x task-prolog ] && [ -x epilog ] && [ -s job.sh ] || { fail "docs/sharing.md has no scripts for Slurm"; exit 1; }
sed -i "2iREMAT_JOBS=$tmp/jobs REMAT_JOB_SHARE=${SHARE}M" prolog task-prolog epilog
sed -i "s/--ntasks=2/--ntasks=4/; s,stats.%r.json,$tmp/stats.'\$SLURM_JOB_ID'.%r.json," job.sh
printf '#!/bin/sh\nexec "%s/workloads/mlp" --iters 8 --batch 4096 --layers 12 --print-loss\n' "$B" >bin/python
ln -s "$B/remat" bin/remat && chmod +x bin/python
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$tmp/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldPidFile=$tmp/ctl/pid
SlurmdPidFile=$tmp/spool/pid
StateSaveLocation=$tmp/ctl
SlurmdSpoolDir=$tmp/spool
SlurmctldPort=16817
SlurmdPort=16818
SlurmdParameters=config_overrides
Prolog=$tmp/prolog
TaskProlog=$tmp/task-prolog
Epilog=$tmp/epilog
PrologFlags=Alloc
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=8 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES State=UP
END
export SLURM_CONF=$tmp/slurm.conf PATH=$tmp/bin:$PATH REMAT_SIMGPU=1 REMAT_STATUS_DIR=$tmp/status REMAT_GROUP_DIR=$tmp/groups
mkdir munge && dd if=/dev/urandom of=munge/key bs=1 count=128 2>/dev/null && chmod 400 munge/key && chown -R munge munge
setpriv --reuid munge --regid munge --clear-groups munged --foreground --force --key-file="$tmp/munge/key" --socket="$tmp/munge/socket" --log-file="$tmp/munge/log" \
    --pid-file="$tmp/munge/pid" --seed-file="$tmp/munge/seed" >munge.out 2>&1 &
for _ in $(seq 100); do [ -S munge/socket ] && break; sleep 0.1; done
slurmctld -D >ctl.out 2>&1 &
slurmd -D >d.out 2>&1 &
for _ in $(seq 300); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo -h -o %T | grep -q idle || { fail "Slurm does not start: $(tail -n 5 ctl.out d.out munge.out)"; exit 1; }

mkdir groups
a=$(sbatch --parsable -o a.out job.sh) && b=$(sbatch --parsable -o b.out job.sh) || fail "sbatch"
# both at work, each with four processes in its group
both=
for _ in $(seq 600); do
    remat status --json >now.json
    python3 - "$a" "$b" <<'END' && both=yes && break
import json, sys
groups = {g["group"]: g for g in json.load(open("now.json"))["groups"]}
sys.exit(not all(len(groups.get("slurm-" + job, {"members": []})["members"]) == 4 and groups["slurm-" + job]["reserved_bytes"] for job in sys.argv[1:]))
END
    sleep 0.1
    [ -n "$(squeue -h)" ] || break
done
[ -n "$both" ] || { fail "the jobs' processes are in no groups of four: $(cat now.json)"; exit 1; }
scancel "$b" || fail "scancel"
peak=0
for _ in $(seq 1200); do
    [ -n "$(squeue -h)" ] || break
    remat status --json >now.json
    peak=$(python3 - "$a" "$b" "$SHARE" "$peak" <<'END'
import json, sys
a, b, share, peak = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20, int(sys.argv[4])
for g in json.load(open("now.json"))["groups"]:
    if g["group"] in ("slurm-" + a, "slurm-" + b):
        assert g["limit_bytes"] == share and g["peak_reserved_bytes"] <= share, g
        peak = max(peak, g["peak_reserved_bytes"])
print(peak)
END
    ) || fail "a job has more than its share: $(cat now.json)"
    sleep 0.1
done
[ -z "$(squeue -h)" ] || fail "jobs are still there: $(squeue)"
[ "$peak" -gt $((SHARE << 19)) ] || fail "the jobs were not short of memory: $peak bytes at most"
LD_LIBRARY_PATH=$SIM "$B/workloads/mlp" --iters 8 --batch 4096 --layers 12 --print-loss >alone
for i in 1 2 3 4; do cat alone; done | sort >want
sort a.out | cmp - want || fail "job $a computes something else: $(tail -n 3 a.out)"
for i in 0 1 2 3; do [ -s "stats.$a.$i.json" ] || fail "%r is not Slurm's number of the task: $(ls stats.*)"; done
grep -q CANCELLED b.out || fail "job $b was not cancelled: $(tail -n 3 b.out)"
for _ in $(seq 100); do [ -z "$(ls jobs | grep conf)" ] && break; sleep 0.1; done
[ -z "$(ls jobs | grep conf)" ] || fail "the epilog left $(ls jobs)"
remat status --json >now.json
grep -q '"slurm-' now.json && fail "a group outlives its job: $(cat now.json)"
echo "each job within $SHARE MiB, $((peak >> 20)) MiB at most"
exit "$failed"
