#!/bin/sh
# Writes hash_ptx.h, the PTX of hash.cu as a C string. Needs nvcc.
set -e
here=$(dirname "$0")
tmp=$(mktemp)
nvcc -ptx -arch=compute_75 -o "$tmp" "$here/hash.cu"
release=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
echo "/* Generated from hash.cu by generate.sh, with nvcc $release. */"
echo 'static const char hash_ptx[] ='
# no compiler banner; an ISA version that every driver since CUDA 12.0 reads
sed -e '/^\/\//d' -e '/^$/d' -e 's/^\.version .*/.version 8.0/' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$tmp"
echo '    ;'
rm -f "$tmp"
