#!/bin/bash
# Volumes by command on one machine: mortard and mortar, our mounts, what outlives what.
# timeout: 240
. "$(dirname "$0")/lib.sh"

ADDR=198.18.7.1
ip -n "$ns_prefix-main" addr add "$ADDR/32" dev lo
mkdir "$T/bricks" "$T/mnt"
cat > "$T/mortard.vol" <<VOL
volume management
    type mgmt/glusterd
    option working-directory $T/work
    option run-directory $T/run
    option logging-directory $T/log
    option glusterd-sockfile $T/run/mortard.socket
end-volume
VOL

# nothing waits for the daemon's standard output
start_mortard() { in_ns main mortard -f "$T/mortard.vol" -p "$T/run/mortard.pid" </dev/null >"$T/log/mortard.out" 2>&1; }
stop_mortard() { # stop_mortard SIGNAL
    local p
    p=$(cat "$T/run/mortard.pid")
    end_pid "$p" "$1"
    wait_for 20 is_gone "$p"
}
m() { in_ns main mortar --mode=script --glusterd-sock="$T/run/mortard.socket" "$@" 2>&1; }
b() { echo "$ADDR:$T/bricks/$1"; }
row() { m volume status home --xml | tr -d '\n ' | grep -o "<path>$T/bricks/$1</path>.*" | grep -o "<$2>[^<]*" | head -n 1 | cut -d'>' -f2; }
all_online() { [ "$(m volume status home --xml | grep -c '<status>1</status>')" = "$1" ]; }

ok "mortard starts, and returns when it works" start_mortard
is "$(m volume list)" "No volumes present in cluster" "there are no volumes"
is "$(m peer status)" "Number of Peers: 0" "nor peers"
like "$(m pool list)" "localhost.*Connected" "the pool is this machine"

like "$(m volume create home replica 2 "$(b 1)" "$(b 2)")" "failed: Multiple bricks of a replicate volume" "two bricks of a mirror on one machine are questioned"
not_ok "and no folder is left behind" test -e "$T/bricks/1"
is "$(m volume create home replica 2 "$(b 1)" "$(b 2)" force)" "volume create: home: success: please start the volume to access data" "forced, it is made"
like "$(m volume create home "$(b 3)")" "failed: Volume home already exists" "its name is taken"
like "$(m volume create other "$(b 1)/sub" force)" "failed: Brick: .*Brick may be containing or be contained" "so are its bricks"
like "$(m volume create other "$ADDR:$T/none/sub/x" force)" "Reason : No such file or directory" "only the last folder of a path is made"
like "$(m volume info home)" "Type: Replicate.*Status: Created.*Number of Bricks: 1 x 2 = 2.*Brick2: $(b 2)" "volume info tells it"
is "$(m volume start home)" "volume start: home: success" "it starts"
like "$(m volume start home)" "failed: Volume home already started" "but once"
ok "both bricks and the heal daemon are online" wait_for 20 all_online 3

start_mount --volfile-server=$ADDR --volfile-id=home "$T/mnt"
ok "files are copied in" cp -a /usr/share/doc/bash "$T/mnt/doc"
ok "both bricks have them" wait_for 20 diff -r --no-dereference "$T/bricks/1/doc" "$T/bricks/2/doc"

is "$(m volume set home network.ping-timeout 7)" "volume set: success" "an option is set"
like "$(m volume get home network.ping-timeout)" "network.ping-timeout +7" "and shown"
like "$(m volume set home network.ping-timeot 7)" "does not exist.Did you mean network.ping-timeout" "a slip of the fingers is met with the right name"
like "$(m volume set home cluster.quorum-type 7)" "possible options are none, auto, fixed" "a wrong value is refused"
ok "the mount has the new file" wait_for 20 grep -q "option ping-timeout 7" "$T/work/vols/home/home.tcp-fuse.vol"
is "$(m volume set home group metadata-cache)" "volume set: success" "a group is set"
like "$(m volume info home)" "performance.md-cache-timeout: 600" "all of it"
is "$(m volume reset home)" "volume reset: success: reset volume successful" "options are reset"
ok "the mount goes on over all that" wait_for 10 sh -c "echo more > $T/mnt/more && grep -q more $T/bricks/2/more"

pid=$(row 1 pid)
stop_mortard KILL
ok "bricks outlive a killed mortard" sh -c "kill -0 $pid && echo alone > $T/mnt/alone"
ok "it starts again" start_mortard
is "$(row 1 pid)" "$pid" "and knows its bricks"
end_pid "$pid" KILL
ok "a brick that was killed is started again" wait_for 40 all_online 3
ok "by a new process" test "$(row 1 pid)" != "$pid"
ok "the mount reaches it" wait_for 40 sh -c "echo again > $T/mnt/again && grep -q again $T/bricks/1/again"

is "$(m volume replace-brick home "$(b 1)" "$(b 9)" commit force)" "volume replace-brick: success: replace-brick commit force operation successful" "a brick is replaced"
like "$(m volume info home)" "Brick1: $(b 9)" "in its place"
ok "the new one is online" wait_for 40 all_online 3
ok "the mount writes to it" wait_for 40 sh -c "echo replaced > $T/mnt/replaced && grep -q replaced $T/bricks/9/replaced"
ok "and heal fills it" wait_for 60 diff -r --no-dereference "$T/bricks/9/doc" "$T/bricks/2/doc"
ok "nothing is left to heal" wait_for 60 sh -c "! nsenter --net=/run/netns/$ns_prefix-main mortar --glusterd-sock=$T/run/mortard.socket volume heal home info | grep 'Number of entries: [^0]'"
like "$(m volume heal home info summary)" "Brick $(b 9).*Number of entries in split-brain: 0" "heal info summary is shown"
like "$(m volume heal home)" "Launching heal operation to perform index self heal on volume home has been successful" "heal is launched"
like "$(m volume heal home full)" "perform full self heal on volume home has been successful" "and in full"
like "$(m volume heal home disable)" "Disable heal on volume home has been successful" "it can be switched off"
like "$(m volume heal home)" "Self-heal-daemon is disabled" "and says so then"
like "$(m volume delete home)" "Volume needs to be stopped before deletion" "a started volume is not deleted"
umount "$T/mnt"
is "$(m volume stop home)" "volume stop: home: success" "it is stopped"
not_ok "its bricks are gone" pgrep -f "brick-name $T/bricks/"
is "$(m volume delete home)" "volume delete: home: success" "and deleted"
ok "the data stays" test -e "$T/bricks/2/doc"
not_ok "its files do not" test -e "$T/work/vols/home"
stop_mortard TERM
like "$(m volume list)" "Connection failed. Please check if gluster daemon is operational." "without a daemon the command says so"
done_testing
