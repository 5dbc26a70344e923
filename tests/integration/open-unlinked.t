#!/bin/bash
# Field case C3: a file whose name has gone (another renamed over it, or unlinked) works through its descriptor.
. "$(dirname "$0")/lib.sh"

for count in 2 1; do
    volume v$count $count
    start_bricks v$count
    start_mount v$count "$T/m$count"
    mkdir "$T/m$count/dir"
    nested "$count brick(s)" renfd "$T/m$count/dir"
    rm -r "$T/m$count/dir"
    stop_mount "$T/m$count"
done
bricks_agree v2 "both bricks hold the same, nothing left behind"

# The name goes through another mount.
start_mount v2 "$T/a"
start_mount v2 "$T/b"
echo content > "$T/a/f"
exec 8<>"$T/a/f"
rm "$T/b/f"
is "$(cat <&8)" content "read after it was unlinked through another mount"
ok "written after it was unlinked through another mount" sh -c 'echo more >&8'
exec 8>&-
done_testing
