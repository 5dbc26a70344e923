#!/bin/bash
# Files and directories by their gfid: .gfid/UUID in the root of a mount with --aux-gfid-mount.
# timeout: 200
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
start_mount vol "$T/a" --aux-gfid-mount
start_mount "$T/vol/client.vol" "$T/b"
uuid() { local g; g=$(gfid_of "$T/vol/b1/$1"); echo "${g:0:8}-${g:8:4}-${g:12:4}-${g:16:4}-${g:20}"; }

mkdir -p "$T/a/dir/sub"
echo content > "$T/a/dir/file"
echo deep > "$T/a/dir/sub/deep"
ln -s dir/file "$T/a/link"
g=$T/a/.gfid

not_ok "it is not listed" sh -c "ls -A $T/a | grep -q gfid"
is "$(stat -c '%F %a' "$g")" "directory 700" "it is a directory of root"
is "$(cat "$g/$(uuid dir/file)")" content "a file"
is "$(stat -c '%i %s' "$g/$(uuid dir/file)")" "$(stat -c '%i %s' "$T/a/dir/file")" "is the same file"
is "$(readlink "$g/$(uuid link)")" dir/file "a symbolic link"
is "$(ls "$g/$(uuid dir)" | tr '\n' ' ')" "file sub " "a directory"
is "$(cat "$g/$(uuid dir)/sub/deep" "$g/$(uuid dir/sub)/deep" | tr '\n' ' ')" "deep deep " "what is below it"
is "$(ls "$g/00000000-0000-0000-0000-000000000001" | tr '\n' ' ')" "dir link " "the root"
not_ok "a gfid that does not exist" stat "$g/11111111-2222-3333-4444-555555555555"
not_ok "a name that is no gfid" stat "$g/name"
not_ok "nothing can be made in it" touch "$g/name"
not_ok "nor moved into it" mv "$T/a/link" "$g/name"
not_ok "another user cannot look" setpriv --reuid 65534 --regid 65534 --clear-groups stat "$g/$(uuid dir/file)"
not_ok "without the option it is not there" stat "$T/b/.gfid"

# The kernel takes the two for two directories: what is done in one is seen in the other.
cd "$T/a/dir/sub" || exit 1
stat "$T/a/dir/file" "$T/a/dir" >/dev/null
ok "made by gfid" sh -c "echo new > $g/$(uuid dir)/new"
is "$(cat "$T/a/dir/new")" new "seen by its path"
ok "removed by gfid" rm "$g/$(uuid dir)/file"
ok "gone by its path" wait_for 5 sh -c "! test -e $T/a/dir/file"
ok "made by its path" mkdir "$T/a/dir/other"
ok "seen by gfid" test -d "$g/$(uuid dir)/other"
ok "moved from one to the other" mv "$T/a/dir/new" "$g/$(uuid dir/sub)/moved"
is "$(cat "$T/a/dir/sub/moved")" new "seen by its path"
ok "mode set by gfid" chmod 0711 "$g/$(uuid dir)"
is "$(stat -c %a "$T/a/dir")" 711 "seen by its path"
is "$(pwd -P)" "$T/a/dir/sub" "the working directory is where it was"
ok "a directory is removed by gfid" rmdir "$g/$(uuid dir)/other"
ok "and gone by its path" wait_for 5 sh -c "! test -e $T/a/dir/other"
cd "$T" || exit 1
stop_mount "$T/a"
stop_mount "$T/b"
bricks_agree vol "both bricks hold the same"
done_testing
