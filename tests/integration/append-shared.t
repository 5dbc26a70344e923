#!/bin/bash
# Field case C16: three mounts append lines to one file with O_APPEND; every line is there, whole.
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
for m in a b c; do start_mount vol "$T/$m"; done
for m in a b c; do appender "$T/$m/log" $m 500 & pids+=($!); done
failed=0
for p in "${pids[@]}"; do wait "$p" || failed=1; done
is $failed 0 "all appends succeed"
for m in a b c; do ok "1500 whole lines, seen through mount $m" appender --check "$T/$m/log" 1500; done
bricks_agree vol "both bricks hold the same"
rm "$T/a/log"
pids=()
for m in a b c; do appender "$T/$m/log" $m 100 3 & pids+=($!); done
wait "${pids[@]}"
ok "three processes on each mount: 900 whole lines" appender --check "$T/b/log" 900
done_testing
