#!/bin/bash
# Three machines by command: probed, a mirror over them, any one killed or cut off, detached.
# timeout: 300
. "$(dirname "$0")/lib.sh"

declare -A addr=([h1]=198.18.9.1 [h2]=198.18.9.2 [h3]=198.18.9.3)
for h in h1 h2 h3; do
    make_ns $h ${addr[$h]}
    mkdir -p "$T/$h/run" "$T/$h/log" "$T/$h/bricks"
    cat > "$T/$h/mortard.vol" <<VOL
volume management
    type mgmt/glusterd
    option working-directory $T/$h/work
    option run-directory $T/$h/run
    option logging-directory $T/$h/log
    option glusterd-sockfile $T/$h/run/mortard.socket
end-volume
VOL
done
start_mortard() { in_ns "$1" mortard -f "$T/$1/mortard.vol" -p "$T/$1/run/mortard.pid" </dev/null >"$T/log/$1.out" 2>&1; }
stop_mortard() { # stop_mortard HOST SIGNAL
    local p
    p=$(cat "$T/$1/run/mortard.pid")
    end_pid "$p" "$2"
    wait_for 20 is_gone "$p"
}
m() { local h=$1; shift; in_ns "$h" mortar --mode=script --glusterd-sock="$T/$h/run/mortard.socket" "$@" 2>&1; }
connected() { [ "$(m "$1" peer status | grep -c '(Connected)')" = "$2" ]; }
online() { [ "$(m "$1" volume status web --xml | grep -c '<status>1</status>')" = "$2" ]; }
# What all machines must agree on.
state() { m "$1" volume info; m "$1" volume get all all; m "$1" pool list | awk '{ print $1 }' | sort; }
agree() { local a; a=$(state h1); [ "$a" = "$(state h2)" ] && [ "$a" = "$(state h3)" ]; }

for h in h1 h2 h3; do ok "mortard starts on $h" start_mortard $h; done
is "$(m h1 peer probe ${addr[h2]})" "peer probe: success" "a machine is probed"
is "$(m h1 peer probe ${addr[h3]})" "peer probe: success" "and another"
is "$(m h1 peer probe ${addr[h3]})" "peer probe: Host ${addr[h3]} port 24007 already in peer list" "which is known then"
is "$(m h1 peer probe ${addr[h1]})" "peer probe: Probe on localhost not needed" "this one needs no probe"
like "$(m h1 peer probe 198.18.9.77)" "peer probe: failed: Probe returned with Transport endpoint is not connected" "one that is not there is missed"
for h in h1 h2 h3; do ok "$h is connected to both others" wait_for 30 connected $h 2; done
like "$(m h2 pool list)" "localhost" "the pool has names"

is "$(m h2 volume create web replica 3 ${addr[h1]}:$T/h1/bricks/b ${addr[h2]}:$T/h2/bricks/b ${addr[h3]}:$T/h3/bricks/b force)" \
    "volume create: web: success: please start the volume to access data" "a mirror over three is made on the second"
is "$(m h3 volume start web)" "volume start: web: success" "and started on the third"
ok "all bricks and heal daemons run" wait_for 40 online h1 6
ok "all machines say the same" wait_for 20 agree
like "$(m h1 volume create web ${addr[h1]}:$T/h1/bricks/c)" "Volume web already exists" "its name is taken everywhere"
like "$(m h1 volume create other replica 2 ${addr[h1]}:$T/h1/bricks/c ${addr[h2]}:$T/h2/bricks/b force)" \
    "Staging failed on ${addr[h2]}. Error: .*|Brick may be containing" "a brick of another machine is checked there"
not_ok "and the folder made for it here is gone" test -e "$T/h1/bricks/c"

start_mount --ns h1 --volfile-server=${addr[h1]} --volfile-id=web "$T/mnt"
ok "files are copied in" cp -a /usr/share/doc/bash "$T/mnt/doc"
for h in h1 h2 h3; do ok "$h has them" wait_for 20 diff -r --no-dereference "$T/mnt/doc" "$T/$h/bricks/b/doc"; done

# ---- one machine's daemon is killed
stop_mortard h3 KILL
ok "the others miss it" wait_for 40 connected h1 1
is "$(m h1 volume set web network.ping-timeout 11)" "volume set: success" "two of three change options"
ok "the mount goes on" sh -c "echo two > $T/mnt/two"
ok "it comes back" start_mortard h3
ok "is connected" wait_for 40 connected h3 2
ok "and knows what it missed" wait_for 30 agree
like "$(m h3 volume get web network.ping-timeout)" "network.ping-timeout +11" "the option too"

# ---- one machine is cut off
cut_ns h2
ok "it is missed" wait_for 60 connected h1 1
like "$(m h2 volume set web network.ping-timeout 12)" "volume set: failed: Quorum not met. Volume operation not allowed." "alone it may not change anything"
like "$(m h2 volume info web)" "network.ping-timeout: 11" "but look"
is "$(m h3 volume set web network.ping-timeout 13)" "volume set: success" "the others may"
join_ns h2
ok "it is connected again" wait_for 60 connected h2 2
ok "and all say the same" wait_for 30 agree
like "$(m h2 volume get web network.ping-timeout)" "network.ping-timeout +13" "what the majority said"

# ---- all are killed, and come back
for h in h1 h2 h3; do stop_mortard $h KILL; done
ok "without any daemon the mount goes on" sh -c "echo none > $T/mnt/none && grep -q none $T/mnt/none"
for h in h1 h2 h3; do ok "$h comes back" start_mortard $h; done
for h in h1 h2 h3; do ok "$h is connected" wait_for 40 connected $h 2; done
ok "all say the same" wait_for 30 agree
is "$(m h1 volume set web network.ping-timeout 14)" "volume set: success" "and can change it"

# ---- machines go
like "$(m h1 peer detach ${addr[h3]})" "peer detach: failed: Peer ${addr[h3]} hosts one or more bricks" "one with bricks stays"
umount "$T/mnt"
is "$(m h1 volume stop web)" "volume stop: web: success" "the volume is stopped"
is "$(m h2 volume delete web)" "volume delete: web: success" "and deleted, on another machine"
is "$(m h1 peer detach ${addr[h3]})" "peer detach: success" "now it may go"
ok "it is alone" wait_for 30 sh -c "[ \"\$(nsenter --net=/run/netns/$ns_prefix-h3 mortar --glusterd-sock=$T/h3/run/mortard.socket peer status)\" = 'Number of Peers: 0' ]"
is "$(m h1 peer status | head -n 1)" "Number of Peers: 1" "the others are two"
is "$(m h3 volume create own ${addr[h3]}:$T/h3/bricks/own force)" "volume create: own: success: please start the volume to access data" "alone it can make volumes"
like "$(m h1 peer probe ${addr[h3]})" "peer probe: failed: ${addr[h3]} is either already part of another cluster or having volumes configured" "and is not taken in with them"
for h in h1 h2 h3; do stop_mortard $h TERM; done
done_testing
