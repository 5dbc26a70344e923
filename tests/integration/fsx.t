#!/bin/bash
# One file under random operations, maps included, against a model: on one brick, on a mirror, on a mirror whose bricks
# die and come back meanwhile.
# timeout: 1500
. "$(dirname "$0")/lib.sh"

OPS=${TEST_FSX_OPS:-100000}
SEED=${TEST_FSX_SEED:-1}
options=(--seed "$SEED" --mmap ${TEST_FSX_OPTIONS:-})
diag "seed $SEED"

volume one 1
start_bricks one
start_mount one "$T/m1"
ok "one brick" fsx_like "$T/m1" --ops "$OPS" "${options[@]}"
ok "one brick, with direct I/O" fsx_like "$T/m1" --ops $((OPS / 10)) --direct "${options[@]}"
stop_mount "$T/m1"

volume two 2
start_bricks two
start_mount two "$T/m2"
ok "mirror" fsx_like "$T/m2" --ops "$OPS" "${options[@]}"
stop_mount "$T/m2"
bricks_agree two "mirror: both bricks hold the same"

volume half 2
start_bricks half
start_mount half "$T/m3"
fsx_like "$T/m3" --ops "$OPS" "${options[@]}" > "$T/fsx.out" 2>&1 &
fsx=$!
wait_for 20 test -n "$(ls "$T/m3")"
kill_brick half/brick1
wait $fsx
is $? 0 "mirror that loses a brick" || diag "$(cat "$T/fsx.out")"
ok "mirror with one brick" fsx_like "$T/m3" --ops $((OPS / 10)) "${options[@]}"
done_testing
