#!/bin/bash
# check_dist.sh DIST: can the folder run on a machine that has glibc 2.36 and an NVIDIA driver, and nothing else?
# Prints a line per broken rule and fails; prints the size otherwise.
set -u
dist=${1:?usage: check_dist.sh DIST}
bad=0
glibc='^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so'

complain() { echo "dist-gpu: $*" >&2; bad=1; }

needed() { objdump -p "$1" 2>/dev/null | awk '$1 == "NEEDED" {print $2}'; }

# The newest glibc symbol version that FILE asks for must not be above 2.36.
check_glibc()
{
    local newest
    newest=$(objdump -T "$1" 2>/dev/null | grep -o 'GLIBC_2\.[0-9]*' | sort -V | tail -1)
    [ -z "$newest" ] || [ "$(printf '%s\n' "$newest" GLIBC_2.36 | sort -V | tail -1)" = GLIBC_2.36 ] ||
        complain "$1 asks for $newest"
}

for f in remat remat-milp.so libremat.so run.sh run.py facts/alias facts/kernels.ptx workloads/mlp; do
    [ -e "$dist/$f" ] || complain "$f is missing"
done
for f in "$dist"/remat "$dist"/remat-milp.so "$dist"/libremat.so "$dist"/lib/* "$dist"/facts/* "$dist"/workloads/*; do
    [ "$(head -c 4 "$f" 2>/dev/null | tail -c 3)" = ELF ] || continue
    check_glibc "$f"
    while read -r so; do
        [[ $so =~ $glibc ]] && continue
        case ${f#"$dist"/} in
        libremat.so) complain "libremat.so needs $so" ;;
        remat | remat-milp.so | lib/*) [ -e "$dist/lib/$so" ] || complain "${f#"$dist"/} needs $so, which lib/ has not" ;;
        *) [ "$so" = libcuda.so.1 ] || complain "${f#"$dist"/} needs $so" ;;
        esac
    done < <(needed "$f")
done
# the tool itself, with nothing in its environment that could find a library elsewhere
if [ -e "$dist/remat" ]; then
    env -i "$dist/remat" --version >/dev/null 2>&1 || complain "remat --version fails in an empty environment"
    env -i LC_ALL=C "$dist/remat" doctor 2>/dev/null | grep -q '^ok *solver' || complain "remat-milp.so cannot be loaded in an empty environment"
    { env -i LD_TRACE_LOADED_OBJECTS=1 "$dist/remat"; env -i ldd "$dist/remat-milp.so"; } 2>/dev/null |
        awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | while read -r so path; do
        [[ $so =~ $glibc ]] || [ "$(dirname "$path")" -ef "$dist/lib" ] || echo "$so from $path"
    done | { ! grep .; } || complain "remat takes these libraries from outside its folder"
fi
mib=$(du -sm "$dist" | cut -f1)
[ "$mib" -le 60 ] || complain "$mib MiB in all: more than 60"
[ "$bad" = 0 ] && echo "dist-gpu: $dist, $mib MiB, commit $(cat "$dist/COMMIT" 2>/dev/null)"
exit "$bad"
