#!/bin/bash
# A volume of one brick, and one of two: mounted, used, unmounted, mounted again.
. "$(dirname "$0")/lib.sh"

. "$here/exercise.sh"

for count in 1 2; do
    volume v$count $count
    start_bricks v$count
    start_mount v$count "$T/m$count"
    p="$count brick(s)"
    like "$(awk -v m="$T/m$count" '$2 == m { print $3 }' /proc/mounts)" '^fuse\.' "$p: the type in the mount table begins with fuse."
    is "$(ls -A "$T/m$count")" "" "$p: a new volume is empty"
    exercise "$T/m$count" "$p"
    exercise_is_there "$T/m$count" "$p"
    inodes=$(cd "$T/m$count" && stat -c '%n %i' file doc soft fifo null)
    ok "$p: unmount ends the process" stop_mount "$T/m$count"
    start_mount v$count "$T/m$count"
    exercise_is_there "$T/m$count" "$p, mounted again"
    is "$(cd "$T/m$count" && stat -c '%n %i' file doc soft fifo null)" "$inodes" "$p: inode numbers stay over a remount"
    ok "$p: mount and brick hold the same" compare_bricks --mount "$T/m$count" "$T/v$count/b1"
    [ $count = 1 ] || bricks_agree v$count "$p: both bricks hold the same"
    stop_mount "$T/m$count"
    for id in "${!brick_pid[@]}"; do
        ok "$p: $id ends on SIGTERM" stop_brick "$id"
        unset "brick_pid[$id]"
    done
done
done_testing
