#!/bin/bash
# Two clients that change one file and one directory all the time take turns: each gets on, and none waits long for the
# other. Also with GlusterFS's client as one of the two, and with both of ours on GlusterFS's bricks, where they are there.
# timeout: 180
NEEDS_PROGRAMS="python3"
. "$(dirname "$0")/lib.sh"

SECONDS_EACH=3
WORST_S=3 # of one change; a machine under load has pauses of its own

change() { # change DIR TAG: prints counts and the longest time of writes with fsync to one file, and of creates
    python3 - "$1" "$2" $SECONDS_EACH <<'END'
import os, sys, time

def run(what):
    end, count, worst = time.time() + float(sys.argv[3]), 0, 0
    while time.time() < end:
        start = time.time()
        what(count)
        worst = max(worst, time.time() - start)
        count += 1
    return "%d %.3f" % (count, worst)

fd = os.open(sys.argv[1] + "/file", os.O_RDWR)
def write(i):
    os.pwrite(fd, b"x" * 4096, 0)
    os.fsync(fd)
def create(i):
    os.close(os.open("%s/dir/%s.%d" % (sys.argv[1], sys.argv[2], i), os.O_CREAT | os.O_WRONLY))
print(run(write), run(create))
END
}

# Changes of one file's mode, twenty from either side, one after the other: seconds in all.
change_modes() { # change_modes DIR DIR
    python3 - "$1/file" "$2/file" <<'END'
import os, sys, time
begin = time.time()
for i in range(20):
    for path in sys.argv[1:3]:
        os.chmod(path, 0o600 + i)
print("%.3f" % (time.time() - begin))
END
}

take_turns() { # take_turns NAME BRICK MOUNT_A MOUNT_B
    local name=$1 v=v$((++turn)) m writes worst_write creates worst_create
    BRICK=$2
    volume $v 2
    start_bricks $v
    MOUNT=$3; start_mount $v "$T/$v-a"
    MOUNT=$4; start_mount $v "$T/$v-b"
    head -c 65536 /dev/zero > "$T/$v-a/file"
    mkdir "$T/$v-a/dir"
    change "$T/$v-a" a > "$T/$v.a" & local one=$!
    change "$T/$v-b" b > "$T/$v.b" & local two=$!
    wait $one $two
    for m in a b; do
        read -r writes worst_write creates worst_create < "$T/$v.$m"
        at_least "$writes" 10 "$name: client $m writes"
        at_most "$worst_write" $WORST_S "$name: client $m never waits long to write"
        at_least "$creates" 10 "$name: client $m creates"
        at_most "$worst_create" $WORST_S "$name: client $m never waits long to create"
    done
    # who waits for the other's session to end by itself needs a second each time
    at_most "$(change_modes "$T/$v-a" "$T/$v-b")" 15 "$name: forty changes of mode in turns"
    for m in a b; do stop_mount "$T/$v-$m"; done
    stop_brick $v/brick1; stop_brick $v/brick2
}

turn=0
take_turns "two of ours" mortarfs mortarfs mortarfs
if command -v glusterfs >/dev/null && command -v glusterfsd >/dev/null; then
    take_turns "ours and GlusterFS's" mortarfs mortarfs glusterfs
    take_turns "two of ours on GlusterFS's bricks" glusterfsd mortarfs mortarfs
else
    skip "with GlusterFS" "glusterfs and glusterfsd are not installed"
fi
done_testing
