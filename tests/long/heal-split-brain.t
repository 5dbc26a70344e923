#!/bin/bash
# Files in split brain: they give EIO, the log names both copies and the command that ends it, "info" lists them apart, and
# each way of choosing a copy ends it; on a mount also by virtual xattrs.
# timeout: 300
NEEDS_PROGRAMS="mortar-heal"
. "$(dirname "$0")/../integration/lib.sh"

volume vol 2
dirs=("$T/vol/b1" "$T/vol/b2")
names=(bigger latest source all-1 all-2 attr xattr choice gfid gfid2 type)
start_bricks vol
start_mount vol "$T/a" --attribute-timeout=0 --entry-timeout=0
m=$T/a
for n in bigger latest source all-1 all-2 attr xattr choice; do echo begin > "$m/$n"; done
mkdir "$m/dir"
sync -f "$m"
wait_for 20 is_clean "${dirs[@]}"

# Each brick alone gets changes that the other misses. The mount of one side must not remember the other.
one_side() { # one_side BRICK-TO-STOP BRICK-LEFT
    local n
    stop_mount "$m"
    kill_brick "vol/brick$1"
    start_mount vol "$m" --attribute-timeout=0 --entry-timeout=0
    for n in bigger latest source all-1 all-2 xattr choice; do echo "side $2 $( [ "$2" = 1 ] || echo is longer)" > "$m/$n"; done
    echo later >> "$m/latest"
    chmod "70$2" "$m/attr"
    echo "gfid $2" > "$m/dir/gfid"; echo "gfid $2 $( [ "$2" = 2 ] || echo longer)" > "$m/dir/gfid2"
    if [ "$2" = 1 ]; then mkdir "$m/dir/type"; else echo file > "$m/dir/type"; fi
    sync -f "$m"
    sleep 1.2 # times differ by more than they are kept to
}
one_side 2 1
wait_for 20 [ -n "$(pending "$T/vol/b1")" ]
stop_mount "$m"; kill_brick vol/brick1
restart_brick vol/brick2
one_side 1 2 2>/dev/null
wait_for 20 [ -n "$(pending "$T/vol/b2")" ]
restart_brick vol/brick1
stop_mount "$m"
start_mount vol "$m" --attribute-timeout=0 --entry-timeout=0
wait_connected vol/brick1 "$m"
wait_connected vol/brick2 "$m"
start_shd vol
b1=$(heal vol info | sed -n 's/^Brick //p' | head -n 1)

not_ok "a file in split brain cannot be read" cat "$m/bigger"
like "$(grep -h "\[split-brain\]" "$T/log/mount-a.log" | tail -n 1)" 'copies=vol-client-0\(size=.*,mtime=.*\),vol-client-1\(size=.*resolve source-brick' "the log names both copies and the way out"
not_ok "a name with two inodes cannot be looked up" stat "$m/dir/gfid"

in_split_brain() { heal vol info split-brain | sed -n 's/^Number of entries in split-brain: //p' | tr '\n' ' '; }
list=$(heal vol info)
like "$list" '/bigger - Is in split-brain' "info: a file in split brain"
like "$list" '/attr - Is in split-brain' "info: attributes in split brain"
like "$list" '/dir - Is in split-brain' "info: a directory with a name that leads to two inodes"
like "$(heal vol info split-brain)" $'/bigger\n' "info split-brain lists it"
like "$(heal vol --json info)" '"state": "split-brain"' "JSON says so"
count=$(in_split_brain)
like "$(heal vol info summary)" "Number of entries in split-brain: ${count%% *}" "the summary counts as many"

result() { heal vol "$@" > "$T/log/tool.out" 2>&1; echo "$?: $(cat "$T/log/tool.out")"; }
is "$(result resolve bigger-file /bigger)" "0: Healed /bigger." "bigger-file"
is "$(cat "$m/bigger")" "side 2 is longer" "bigger-file took the larger copy"
is "$(result resolve latest-mtime /latest)" "0: Healed /latest." "latest-mtime"
is "$(head -n 1 "$m/latest")" "side 2 is longer" "latest-mtime took the later copy"
is "$(result split-brain source-brick "$b1" /source)" "0: Healed /source." "source-brick"
is "$(cat "$m/source")" "side 1 " "source-brick took its copy"
is "$(result resolve bigger-file /source)" "1: Healing /source failed: File not in split-brain.
Volume heal failed." "a file that is not in split brain"
is "$(result resolve latest-mtime /attr)" "1: Healing /attr failed: Use source-brick option to heal metadata split-brain.
Volume heal failed." "attributes cannot be chosen by time"
is "$(result resolve source-brick "$b1" /attr)" "0: Healed /attr." "attributes from a brick"
is "$(stat -c %a "$m/attr")" 701 "they are that brick's"
is "$(result resolve source-brick "h9:/none" /attr)" "1: \"h9:/none\"- No such brick available in the volume.
Volume heal failed." "a brick that is not there"
is "$(result resolve bigger-file /none)" "2: Lookup failed on /none:No such file or directory.
Volume heal failed." "a file that is not there"
is "$(result resolve bigger-file none)" "1: <FILE> must be absolute path w.r.t. the volume, starting with '/'
Volume heal failed." "a path that does not begin with /"
is "$(result resolve bigger-file /dir)" "1: 'bigger-file' not a valid option for directories.
Volume heal failed." "a directory"
is "$(result resolve source-brick "$b1" /dir/gfid)" "0: GFID split-brain resolved for file /dir/gfid" "one name, two inodes: source-brick"
ok "it leads to that brick's" wait_for 20 grep -qx "gfid 1" "$m/dir/gfid"
is "$(result resolve bigger-file /dir/gfid2)" "0: GFID split-brain resolved for file /dir/gfid2" "one name, two inodes: bigger-file"
ok "it leads to the larger one" wait_for 20 grep -q "longer" "$m/dir/gfid2"
is "$(result resolve source-brick "$b1" /dir/type)" "0: GFID split-brain resolved for file /dir/type" "a file here, a directory there"
ok "it is the directory" wait_for 20 test -d "$m/dir/type"

is "$(getfattr --only-values -n replica.split-brain-status "$m/choice" 2>/dev/null)" "data-split-brain:yes    metadata-split-brain:no    Choices:vol-client-0,vol-client-1" "the status on a mount"
ok "a copy is chosen for this mount" setfattr -n replica.split-brain-choice -v vol-client-1 "$m/choice"
is "$(cat "$m/choice")" "side 2 is longer" "it is read"
ok "the other copy is chosen" setfattr -n replica.split-brain-choice -v vol-client-0 "$m/choice"
is "$(cat "$m/choice")" "side 1 " "that one is read"
ok "no copy is chosen" setfattr -n replica.split-brain-choice -v none "$m/choice"
not_ok "none is read" cat "$m/choice"
ok "a copy is made the right one" setfattr -n replica.split-brain-heal-finalize -v vol-client-0 "$m/choice"
is "$(cat "$m/choice")" "side 1 " "it is read"
is "$(getfattr --only-values -n replica.split-brain-status "$m/choice" 2>/dev/null)" "The file is not under data or metadata split-brain" "the status afterwards"

like "$(result resolve source-brick "$b1")" "Number of healed entries: [1-9]" "all that a brick lists"
ok "nothing is left" wait_for 60 is_healed vol
ok "the bricks are equal" compare_bricks --ignore-times "${dirs[@]}"
stop_shd vol
done_testing
