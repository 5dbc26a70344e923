#!/bin/bash
# The real GlusterFS client mounts a volume that mortard made, sees options change, and lives through restarts of bricks.
# timeout: 240
NEEDS_PROGRAMS="glusterfs gluster"
. "$(dirname "$0")/../integration/lib.sh"

ADDR=198.18.8.1
ip -n "$ns_prefix-main" addr add "$ADDR/32" dev lo
mkdir "$T/bricks"
cat > "$T/mortard.vol" <<VOL
volume management
    type mgmt/glusterd
    option working-directory $T/work
    option run-directory $T/run
    option logging-directory $T/log
    option glusterd-sockfile $T/run/mortard.socket
end-volume
VOL
m() { in_ns main mortar --mode=script --glusterd-sock="$T/run/mortard.socket" "$@" 2>&1; }
brick_pid_of() { m volume status web --xml | tr -d '\n ' | sed "s|.*<path>$T/bricks/$1</path>||" | grep -o '<pid>[0-9]*' | head -n 1 | cut -d'>' -f2; }
all_online() { [ "$(m volume status web --xml | grep -c '<status>1</status>')" = "$1" ]; }

in_ns main mortard -f "$T/mortard.vol" -p "$T/run/mortard.pid" </dev/null >"$T/log/mortard.out" 2>&1 || fail "mortard starts" "$(cat "$T/log/mortard.out")"
is "$(m volume create web replica 3 $ADDR:$T/bricks/{1,2,3} force)" "volume create: web: success: please start the volume to access data" "a mirror of three is made"
is "$(m volume start web)" "volume start: web: success" "and started"
ok "all bricks run" wait_for 20 all_online 4

MOUNT=glusterfs
start_mount --volfile-server=$ADDR --volfile-id=/web "$T/real"
MOUNT=mortarfs
start_mount --volfile-server=$ADDR --volfile-id=web "$T/ours"
ok "the real client writes" cp -a /usr/share/doc/bash "$T/real/doc"
ok "our mount sees all of it" wait_for 20 diff -r --no-dereference "$T/ours/doc" "$T/real/doc"
for i in 1 2 3; do ok "brick $i has it" wait_for 20 diff -r --no-dereference "$T/ours/doc" "$T/bricks/$i/doc"; done

is "$(m volume set web performance.write-behind off)" "volume set: success" "a translator is switched off"
ok "the real client takes the new graph" wait_for 30 grep -q 'switched to graph' "$T/log/mount-real.log"
ok "and goes on" sh -c "echo switched > $T/real/switched && grep -q switched $T/ours/switched"

end_pid "$(brick_pid_of 2)" KILL
ok "a killed brick comes back" wait_for 40 all_online 4
ok "the real client writes on" sh -c "echo after > $T/real/after"
ok "to all bricks again, in the end" wait_for 60 sh -c "grep -q after $T/bricks/2/after"

p=$(cat "$T/run/mortard.pid")
end_pid "$p" TERM
wait_for 20 is_gone "$p"
ok "without mortard the mounts work on" sh -c "echo alone > $T/real/alone && grep -q alone $T/ours/alone"
ok "mortard starts again" in_ns main mortard -f "$T/mortard.vol" -p "$T/run/mortard.pid"
ok "and knows all bricks" all_online 4
umount "$T/real" "$T/ours"
is "$(m volume stop web)" "volume stop: web: success" "the volume is stopped"
p=$(cat "$T/run/mortard.pid")
end_pid "$p" TERM
wait_for 20 is_gone "$p"
done_testing
