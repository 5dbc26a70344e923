#!/bin/bash
# Field case C14: of eight writers that write at once (64 KiB records, fsync and close in the time), the slowest gets at
# least 60 % of the rate of the fastest. The median of three runs, for other work on the machine disturbs one.
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
start_mount vol "$T/m"
for i in 1 2 3; do
    output=$(w64k8 "$T/m" 16)
    is $? 0 "run $i: all writers finish" || diag "$output"
    diag "$(echo "$output" | tail -n 1)"
    fairness+=("$(echo "$output" | sed -n 's/.*fairness=//p')")
    rm -f "$T/m"/*
done
median=$(printf '%s\n' "${fairness[@]}" | sort -n | sed -n 2p)
at_least "$median" 0.6 "the slowest gets at least 60 % of the fastest ($median)"
done_testing
