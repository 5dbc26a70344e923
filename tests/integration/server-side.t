#!/bin/bash
# Replication at the servers: two brick processes, each over its own disk and the other's, and clients of either.
# timeout: 200
. "$(dirname "$0")/lib.sh"

volume vol 2 --server-side
start_bricks vol
# The first server starts alone and would blame the second for what is written before it came.
for i in 1 2; do
    wait_for 20 grep -q 'child-up.*child=vol-other' "$T/log/vol-brick$i.log" || fail "server $i sees the other"
done
start_mount vol "$T/a"
start_mount "$T/vol/client2.vol" "$T/b"
ok "a tree is copied through the first server" cp -a /usr/share/doc/bash "$T/a/doc"
ok "it is the same through the second" diff -r --no-dereference /usr/share/doc/bash "$T/b/doc"
ok "both disks hold the same" wait_for 15 compare_bricks --ignore-times "$T/vol/b1" "$T/vol/b2"
for i in $(seq 50); do
    echo "$i" > "$T/a/turn"
    [ "$(cat "$T/b/turn")" = "$i" ] || { fail "turn $i"; break; }
    echo "$i back" > "$T/b/turn"
    [ "$(cat "$T/a/turn")" = "$i back" ] || { fail "turn $i back"; break; }
done
is "$i" 50 "fifty rewrites in each direction, each read at once through the other server"
ok "appends from both" sh -c "appender $T/a/log a 200 & appender $T/b/log b 200; wait; appender --check $T/a/log 400"
kill_brick vol/brick1
ok "the client of the second server goes on without the first" sh -c "echo alone > $T/b/alone && grep -q alone $T/b/alone"
is "$(cat "$T/vol/b2/alone")" alone "the second disk has it"
ok "what was there is there" diff -r --no-dereference /usr/share/doc/bash "$T/b/doc"
done_testing
