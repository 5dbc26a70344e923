#!/bin/bash
# The POSIX suite on a mirror of two bricks, which must agree afterwards.
# timeout: 900
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
start_mount vol "$T/m" --acl
nested suite posix_suite "$T/m" $(must_have)
is "$(ls -A "$T/m")" "" "nothing is left behind"
stop_mount "$T/m"
bricks_agree vol "both bricks hold the same"
done_testing
