#!/bin/bash
# Field cases: a brick whose directory was damaged behind its back (names, handles, gfids, attributes, a whole tree, all of
# it), and names, directories and attributes that a brick missed, on real file systems.
# timeout: 400
NEEDS_PROGRAMS="mortar-heal setfacl getfacl"
. "$(dirname "$0")/lib.sh"

handle() { # handle BRICK PATH: its handle in the brick's private directory
    local g
    g=$(gfid_of "$1/$2")
    echo "$1/.glusterfs/${g:0:2}/${g:2:2}/${g:0:8}-${g:8:4}-${g:12:4}-${g:16:4}-${g:20}"
}
heal_full() { in_ns main timeout 120 mortar-heal --volfile="$T/$1/client.vol" --socket="$T/run/none" full >"$T/log/full-$1.out" 2>&1; }
heal_index() { in_ns main timeout 120 mortar-heal --volfile="$T/$1/client.vol" --socket="$T/run/none" >"$T/log/heal-$1.out" 2>&1; }
healed_fully() { heal_full "$1" && compare_bricks "$T/$1/b1" "$T/$1/b2" "$T/$1/b3"; }
healed() { heal_index "$1" && compare_bricks "$T/$1/b1" "$T/$1/b2" "$T/$1/b3"; }

names="use-anonymous-inode yes;volume-id 6f0a3d2e-1111-4222-8333-123456789abc"

# ---- damage ----
volume d 3 --replicate "$names"
start_bricks d
m=$T/m-d b=$T/d/b2
start_mount d "$m" --acl
mkdir -p "$m/dir/sub/deep" "$m/dir2" "$m/dir3"
for f in plain handle gfid attr mode short linked dir/sub/deep/file dir/sub/other dir2/in dir3/in; do echo "content of $f" > "$m/$f"; done
ln "$m/linked" "$m/dir/link"
ln -s target "$m/dir/sub/sym"
mkfifo "$m/dir/sub/fifo"
setfattr -n user.k -v value "$m/attr"
setfacl -m u:1234:rw "$m/mode"
stop_mount "$m"
kill_brick d/brick2
rm "$b/plain" "$b/linked" "$(handle "$b" handle)" "$(handle "$b" dir3)"
setfattr -x trusted.gfid "$b/gfid"
setfattr -x trusted.gfid "$b/dir2"
setfattr -x user.k "$b/attr"
setfacl -b "$b/mode"
chmod 0777 "$b/mode"
truncate -s 3 "$b/short"
rm -rf "$b/dir/sub"
sleep 1 # an entry without gfid that is younger may be half made by somebody
restart_brick d/brick2
ok "damage of a brick is healed by a full walk" wait_for 60 healed_fully d || cat "$T/log/full-d.out"

# ---- all of it, behind everybody's back ----
kill_brick d/brick2
find "$b" -mindepth 1 -delete
restart_brick d/brick2
ok "a brick that lost all is filled by a full walk" wait_for 60 healed_fully d || cat "$T/log/full-d.out"
start_mount d "$m" --acl
kill_brick d/brick1
is "$(cat "$m/dir/sub/deep/file")" "content of dir/sub/deep/file" "and serves"
is "$(getfacl -cn "$m/mode" 2>/dev/null | grep 1234)" "user:1234:rw-" "with its ACLs"
restart_brick d/brick1
wait_for 30 is_connected "$m" d/brick1

# ---- what was missed ----
mkdir -p "$m/a/tree" "$m/b"
for f in over under a/one a/two a/tree/leaf; do echo "content of $f" > "$m/$f"; done
wait_for 15 is_clean "$T/d/b1" "$T/d/b2" "$T/d/b3"
leaf=$(stat -c %i "$b/a/tree/leaf")
kill_brick d/brick2
mv "$m/a/tree" "$m/b/moved"
mv "$m/over" "$m/under"
mv "$m/a/one" "$m/b/one"
rm "$m/a/two"
mkdir "$m/a/two"
echo inner > "$m/a/two/inner"
mknod "$m/a/device" c 1 3
ln "$m/under" "$m/b/hard"
ln -s some/where "$m/b/sym"
chown 1000:2000 "$m/b"
chmod 2775 "$m/b"
setfattr -n user.x -v y "$m/b/moved"
restart_brick d/brick2
ok "names, directories and attributes that were missed are healed" wait_for 60 healed d || cat "$T/log/heal-d.out"
is "$(stat -c %i "$b/b/moved/leaf")" "$leaf" "a directory that was moved is moved on the brick as well, not copied"
is "$(find "$b"/.glusterfs-anonymous-inode-* -mindepth 1 2>/dev/null | wc -l)" 0 "nothing is left of what was put aside"
is "$(cat "$m/under" "$m/b/one" "$m/b/moved/leaf" "$m/a/two/inner")" "content of over
content of a/one
content of a/tree/leaf
inner" "all of it reads as before"
stop_mount "$m"
done_testing
