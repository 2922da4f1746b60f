#!/usr/bin/env bash
# the blocks of the docs that build packages
exec python3 "$(dirname "$0")/../system/test_docs.py" packages
