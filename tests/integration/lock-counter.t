#!/bin/bash
# Field case C1: what was written under a lock is seen by the next who gets it. Two processes on each of three mounts
# count sections guarded by flock; the number must be the number of sections.
# timeout: 300
. "$(dirname "$0")/lib.sh"

SECONDS_EACH=4

run_counters() { # run_counters VOLUME UNLINK
    local m p pids=()
    echo 0 > "$T/$1.a/counter"
    for m in a b c; do
        for p in 1 2; do
            flockb "$T/$1.$m/lock" "$T/$1.$m/counter" $SECONDS_EACH "$2" > "$T/run/flockb.$m$p" 2>&1 &
            pids+=($!)
        done
    done
    wait "${pids[@]}"
    cat "$T"/run/flockb.??
}

check_counters() { # check_counters VOLUME UNLINK NAME
    local output sections
    output=$(run_counters "$1" "$2")
    sections=$(echo "$output" | grep -o 'sections=[0-9]*' | awk -F= '{ n += $2 } END { print n }')
    is "$(cat "$T/$1.c/counter")" "$sections" "$3: the counter is the number of sections" || diag "$output"
    is "$(echo "$output" | grep -v ' errors=0$')" "" "$3: no errors"
    at_least "$sections" 10 "$3: there is progress"
}

check_rounds() { # check_rounds VOLUME flock|fcntl NAME: through descriptors that stay open
    local m pids=()
    rm -f "$T/$1.a/rounds"
    for m in a b c; do lockcount "$2" "$T/$1.$m/rounds" 100 > "$T/run/lockcount.$m" 2>&1 & pids+=($!); done
    wait "${pids[@]}"
    is "$(cat "$T/$1.b/rounds")" 300 "$3: $2 through descriptors that stay open" || diag "$(cat "$T"/run/lockcount.?)"
}

for count in 1 2 3; do
    v=v$count
    volume $v $count
    start_bricks $v
    for m in a b c; do start_mount $v "$T/$v.$m"; done
    check_counters $v 0 "$count brick(s)"
    check_rounds $v flock "$count brick(s)"
    check_rounds $v fcntl "$count brick(s)"
    [ $count != 2 ] || check_counters $v 1 "$count brick(s), the lock file removed each time"
    for m in a b c; do stop_mount "$T/$v.$m"; done
done
done_testing
