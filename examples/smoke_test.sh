#!/bin/sh
# Whether CUDAway works on this machine: runs a kernel with the libraries of the folder that this script was unpacked in.
# `CUDAWAY_DEVICE=cpu examples/smoke_test.sh` for the CPU alone. Prints PASSED and ends with 0, or says what failed.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
exec "$here/bin/cudaway" run -- "$here/bin/cudaway" selftest
