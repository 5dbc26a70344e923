#!/bin/bash
# Hosts that lose each other (network namespaces whose link is cut): a mirror goes on with what it can reach, and what
# comes back is not read while it is stale.
# timeout: 300
. "$(dirname "$0")/lib.sh"

make_ns h1 10.9.1.1
make_ns h2 10.9.1.2
make_ns h3 10.9.1.3
make_ns user1 10.9.1.11
make_ns user2 10.9.1.12
volume vol 3 --hosts "10.9.1.1 10.9.1.2 10.9.1.3" --client "ping-timeout 3" \
    --server "transport.tcp-user-timeout 6"
for i in 1 2 3; do start_brick --ns h$i vol/brick$i || { fail "brick $i starts"; exit 1; }; done
start_mount --ns user1 vol "$T/a"
start_mount --ns user2 vol "$T/b"
ok "written and read" sh -c "echo one > $T/a/f && grep -q one $T/b/f"

cut_ns h1
took=$(seconds timeout -k 1 60 sh -c "echo two > $T/a/f && sync $T/a/f")
is $? 0 "written while a host is cut off ($took s)"
at_most "$took" 10 "within the ping time and a little"
is "$(timeout -k 1 30 cat "$T/b/f")" two "the other client reads it"
join_ns h1
ok "the host is connected again" wait_connected vol/brick1 "$T/a" "$T/b"
is "$(cat "$T/a/f") $(cat "$T/b/f")" "two two" "it is not read while it is stale"

# A client that is cut off can write nothing that others would not see, and does not keep its locks.
cut_ns user1
( timeout -k 1 60 sh -c "echo lost > $T/a/g && sync $T/a/g" 2>"$T/run/cut"; echo $? > "$T/run/cut.status" ) &
cut=$!
took=$(seconds timeout -k 1 60 sh -c "echo kept > $T/b/f && sync $T/b/f")
is $? 0 "the other client writes the file that the lost one had open before ($took s)"
wait $cut
isnt_zero() { [ "$1" != 0 ]; }
ok "the one that is cut off gets an error" isnt_zero "$(cat "$T/run/cut.status")"
join_ns user1
ok "it is connected again" wait_connected vol/brick2 "$T/a"
ok "and reads what the other wrote" wait_for 10 sh -c "[ \$(cat $T/a/f) = kept ]"
not_ok "what it could not write is nowhere" test -s "$T/b/g"
done_testing
