#!/bin/bash
# A brick of a mirror is killed (SIGKILL) in the middle of writing: no application sees an error, nothing that was
# written is lost, the brick that is left tells what the other has missed, and the one that returns is not read while it
# is stale.
# timeout: 400
NEEDS_PROGRAMS="sqlite3"
. "$(dirname "$0")/lib.sh"

# Writes numbered files of numbered lines until it is told to stop; ends with an error at the first failure.
writer() { # writer DIR
    local i=0 d
    while [ ! -e "$T/run/stop" ]; do
        i=$((i + 1)); d=$1/d$((i % 20))
        mkdir -p "$d" || return 1
        seq "$i" $((i + 500)) > "$d/f$i" || return 1
        mv "$d/f$i" "$d/g$i" || return 1
        [ $((i % 3)) != 0 ] || rm "$d/g$i" || return 1
        ln -s "g$i" "$d/l$i" || return 1
        echo "$i" > "$T/run/written"
    done
}
check_writer() { # check_writer DIR: everything that was reported as written
    local i last
    last=$(cat "$T/run/written")
    for ((i = 1; i <= last; i++)); do
        if [ $((i % 3)) = 0 ]; then
            [ ! -e "$1/d$((i % 20))/g$i" ] || { echo "g$i was removed"; return 1; }
        else
            seq "$i" $((i + 500)) | cmp -s - "$1/d$((i % 20))/g$i" || { echo "g$i is not what was written"; return 1; }
        fi
        [ "$(readlink "$1/d$((i % 20))/l$i")" = "g$i" ] || { echo "l$i"; return 1; }
    done
    echo "$last checked"
}
written_at_least() { [ "$(cat "$T/run/written" 2>/dev/null || echo 0)" -ge "$1" ]; }

for victim in 1 2; do
    v=v$victim left=$((3 - victim)) m=$T/m$victim p="brick $victim killed"
    volume $v 2
    start_bricks $v
    start_mount $v "$m"
    rm -f "$T/run/stop" "$T/run/written"
    writer "$m" 2> "$T/run/writer.err" & writer=$!
    fsx_like "$m" --ops 40000 --mmap --seed $victim ${TEST_FSX_OPTIONS:-} > "$T/run/fsx" 2>&1 & fsx=$!
    sqlitecounter "$m/db" --init
    sqlitecounter "$m/db" 6 > "$T/run/sqlite" 2>&1 & sqlite=$!
    wait_for 30 written_at_least 30
    kill_brick $v/brick$victim
    before=$(cat "$T/run/written")
    ok "$p: writing goes on" wait_for 60 written_at_least $((before + 60))
    touch "$T/run/stop"
    wait $writer;  is $? 0 "$p: no error at making, renaming, removing" || diag "$(cat "$T/run/writer.err")"
    wait $sqlite;  is $? 0 "$p: no error in sqlite" || diag "$(cat "$T/run/sqlite")"
    wait $fsx;     is $? 0 "$p: no error, no difference in a file under random operations" || diag "$(cat "$T/run/fsx")"
    is "$(sqlitecounter "$m/db" --value)" "$(sed -n 's/^commits=\([0-9]*\).*/\1/p' "$T/run/sqlite")" "$p: sqlite has every commit"
    ok "$p: everything that was written is there" check_writer "$m"
    at_least "$(pending "$T/$v/b$left" | wc -l)" 2 "$p: the other brick says what it has missed"
    ok "$p: the brick that is left holds what the mount shows" wait_for 10 compare_bricks --pending --mount "$m" "$T/$v/b$left"

    restart_brick $v/brick$victim
    ok "$p: the mount is connected to it again" wait_connected $v/brick$victim "$m"
    ok "$p: the returned brick is not read while it is stale" check_writer "$m"
    start_mount $v "$T/n$victim"
    ok "$p: nor through a new mount" check_writer "$T/n$victim"
    ok "$p: a stale file can be rewritten" sh -c "echo new > $m/d1/g1 && [ \$(cat $T/n$victim/d1/g1) = new ]"
    stop_mount "$T/n$victim"
    stop_mount "$m"
done
done_testing
