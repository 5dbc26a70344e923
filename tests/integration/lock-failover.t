#!/bin/bash
# Field case C2: a lock that is held stays held while the bricks of a mirror of three are restarted one after the other.
# Whoever tries to take it through another mount is refused, unless the holder's descriptor was dead before. Between the
# restarts the heal daemon makes the bricks equal again.
# timeout: 300
. "$(dirname "$0")/lib.sh"

hold_through_restarts() { # hold_through_restarts flock|fcntl
    local kind=$1 file=$1.file b answer state
    echo x > "$T/a/$file"
    coproc holder { holdlock hold "$kind" "$T/a/$file"; }
    read -r -t 20 answer <&"${holder[0]}"
    is "$answer" held "$kind: taken through the first mount"
    is "$(holdlock try "$kind" "$T/b/$file")" refused "$kind: refused through the second"
    for b in 1 2 3; do
        kill_brick vol/brick$b
        echo "$kind $b" > "$T/b/written"
        is "$(holdlock try "$kind" "$T/b/$file")" refused "$kind: refused while brick $b is away"
        restart_brick vol/brick$b
        ok "$kind: both mounts are connected to brick $b again" wait_connected vol/brick$b "$T/a" "$T/b"
        ok "$kind: brick $b is healed" wait_for 60 is_healed vol
        # The state of the holder first: if its descriptor is dead, the lock may go.
        echo check >&"${holder[1]}"
        read -r -t 60 state <&"${holder[0]}"
        answer=$(holdlock try "$kind" "$T/b/$file")
        if [ "$state" = alive ]; then
            is "$answer" refused "$kind: refused after the restart of brick $b"
        else
            like "$state" '^dead ' "$kind: the holder knows after the restart of brick $b"
        fi
    done
    echo end >&"${holder[1]}"
    wait "$holder_PID"
    [ "$state" != alive ] || is "$(holdlock try "$kind" "$T/b/$file")" granted "$kind: granted once it is given up"
}

volume vol 3
start_bricks vol
start_shd vol
start_mount vol "$T/a"
start_mount vol "$T/b"
hold_through_restarts flock
hold_through_restarts fcntl
ok "the bricks are equal" compare_bricks --ignore-ctime "$T/vol/b1" "$T/vol/b2" "$T/vol/b3"
stop_shd vol
done_testing
