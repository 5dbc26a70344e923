#!/bin/bash
# The POSIX suite on a mirror that has lost one of its two bricks.
# timeout: 900
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
start_mount vol "$T/m" --acl
ok "a file is written to both" sh -c "echo both > $T/m/before"
kill_brick vol/brick1
nested suite posix_suite "$T/m" $(must_have)
is "$(cat "$T/m/before")" both "what was there before is there"
stop_mount "$T/m"
ok "the brick that was up says what the other has missed" test -n "$(pending "$T/vol/b2")"
done_testing
