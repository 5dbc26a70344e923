#!/bin/bash
# The POSIX suite on a volume of one brick.
# timeout: 900
. "$(dirname "$0")/lib.sh"

volume vol 1
start_bricks vol
start_mount vol "$T/m" --acl
nested suite posix_suite "$T/m" $(must_have)
is "$(ls -A "$T/m")" "" "nothing is left behind"
stop_mount "$T/m"
ok "the brick is in order" compare_bricks "$T/vol/b1" "$T/vol/b1"
done_testing
