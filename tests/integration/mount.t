#!/bin/bash
# A volume of one brick, and one of two: mounted, used, unmounted, mounted again.
. "$(dirname "$0")/lib.sh"

exercise() { # exercise MNT PREFIX
    local m=$1 p=$2
    ok "$p: write" sh -c "echo hello > $m/file"
    is "$(cat "$m/file")" hello "$p: read"
    ok "$p: make directories" mkdir -p "$m/a/b/c"
    ok "$p: copy a tree" cp -a /usr/share/doc/bash "$m/doc"
    ok "$p: the copy is the same" diff -r --no-dereference /usr/share/doc/bash "$m/doc"
    ok "$p: link" ln "$m/file" "$m/hard"
    ok "$p: symbolic link" ln -s file "$m/soft"
    is "$(stat -c %h "$m/file")" 2 "$p: link count"
    ok "$p: fifo" mkfifo "$m/fifo"
    ok "$p: device" mknod "$m/null" c 1 3
    ok "$p: attributes" setfattr -n user.test -v value "$m/file"
    is "$(getfattr --only-values -n user.test "$m/file" 2>/dev/null)" value "$p: attributes are kept"
    ok "$p: rename" mv "$m/a" "$m/z"
    ok "$p: list" test "$(ls "$m")" = "doc
fifo
file
hard
null
soft
z"
    ok "$p: remove" rm -r "$m/z"
}

for count in 1 2; do
    volume v$count $count
    start_bricks v$count
    start_mount v$count "$T/m$count"
    p="$count brick(s)"
    like "$(awk -v m="$T/m$count" '$2 == m { print $3 }' /proc/mounts)" '^fuse\.' "$p: the type in the mount table begins with fuse."
    is "$(ls -A "$T/m$count")" "" "$p: a new volume is empty"
    exercise "$T/m$count" "$p"
    inodes=$(cd "$T/m$count" && stat -c '%n %i' file doc soft fifo)
    ok "$p: unmount ends the process" stop_mount "$T/m$count"
    start_mount v$count "$T/m$count"
    is "$(cat "$T/m$count/file")" hello "$p: content is there after a remount"
    is "$(cd "$T/m$count" && stat -c '%n %i' file doc soft fifo)" "$inodes" "$p: inode numbers stay over a remount"
    ok "$p: mount and brick hold the same" compare_bricks --mount "$T/m$count" "$T/v$count/b1"
    [ $count = 1 ] || bricks_agree v$count "$p: both bricks hold the same"
    stop_mount "$T/m$count"
    for id in "${!brick_pid[@]}"; do
        ok "$p: $id ends on SIGTERM" stop_brick "$id"
        unset "brick_pid[$id]"
    done
done
done_testing
