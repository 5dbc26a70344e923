#!/bin/bash
# What went wrong with a brick behind its process's back, and so stands in no index, is found and healed by a walk of the
# whole tree: names, handles and attributes that are gone, whole subtrees, a brick that was emptied. The walk is made by
# the daemon or by the command itself.
# timeout: 400
NEEDS_PROGRAMS="mortar-heal"
. "$(dirname "$0")/../integration/lib.sh"

fill() {
    local m=$1 i
    mkdir -p "$m"/d{1..5}/sub "$m/tree/of/some/depth"
    for i in $(seq 1 5); do seq $((i * 300)) > "$m/d$i/file"; seq "$i" > "$m/d$i/sub/file"; ln -s file "$m/d$i/link"; done
    for i in $(seq 40); do echo "$i" > "$m/tree/of/some/depth/f$i"; done
    ln "$m/d1/file" "$m/d2/hard"
    setfattr -n user.x -v y "$m/d3/file"; chown 5:6 "$m/d3/file"; chmod 0751 "$m/d3"
    dd if=/dev/urandom of="$m/large" bs=1M count=4 status=none
}

handle_of() { local g; g=$(gfid_of "$1"); echo "$2/.glusterfs/${g:0:2}/${g:2:2}/${g:0:8}-${g:8:4}-${g:12:4}-${g:16:4}-${g:20:12}"; }

# What the brick's process keeps in memory about what is gone does not matter: it is restarted where a case says so.
walk_heals() { # walk_heals NAME
    local tries
    for tries in 1 2 3; do
        heal vol full > "$T/log/full.out" 2>&1 || diag "$(cat "$T/log/full.out")"
        [ -z "${with_daemon:-}" ] || wait_for 60 is_idle
        wait_for 30 is_healed vol
        compare_bricks "${dirs[@]}" >/dev/null && break
    done
    ok "$1: the bricks are equal after a walk" compare_bricks "${dirs[@]}"
}
is_idle() { heal vol status | grep -q ': idle'; }

volume vol 3
dirs=("$T/vol/b1" "$T/vol/b2" "$T/vol/b3")
start_bricks vol
start_mount vol "$T/a"
fill "$T/a"
sync -f "$T/a"
ok "bricks are equal at the beginning" wait_for 20 is_clean "${dirs[@]}"
stop_mount "$T/a"
b=$T/vol/b2

stop_brick vol/brick2
rm "$b/d1/sub/file" "$b/d4/link"
restart_brick vol/brick2
walk_heals "names that are gone"

stop_brick vol/brick2
rm "$(handle_of "$b/d2/file" "$b")" "$(handle_of "$b/d5" "$b")"
restart_brick vol/brick2
walk_heals "handles that are gone"

stop_brick vol/brick2
setfattr -x user.x "$b/d3/file"; chown 0:0 "$b/d3/file"; chmod 0700 "$b/d3"
restart_brick vol/brick2
walk_heals "attributes that are gone"

stop_brick vol/brick2
rm -r "$b/tree/of"
restart_brick vol/brick2
walk_heals "a subtree that is gone"

# A walk that was interrupted goes on from its mark: what it has seen before is not looked at again. The mark here says
# that the first directory of the root, in the order of the first brick's listing, is done; the names in it are seen again with
# the root, what is deeper is not.
listed() { python3 -c 'import os, sys; print(*[e.name for e in os.scandir(sys.argv[1]) if e.is_dir() and e.name != ".glusterfs"])' "$1"; }
gfid_text() { local g; g=$(gfid_of "$1"); echo "${g:0:8}-${g:8:4}-${g:12:4}-${g:16:4}-${g:20:12}"; }
read -ra directories <<< "$(listed "$T/vol/b1")"
done_before=$(find "$b/${directories[0]}" -mindepth 2 -type f | head -n 1) to_do=$(find "$b/${directories[-1]}" -type f | head -n 1)
for i in 1 2 3; do stop_brick vol/brick$i; done
rm "$done_before" "$to_do"
for i in 1 2 3; do
    setfattr -n trusted.afr.mortar-walk -v "0/00000000-0000-0000-0000-000000000001:0/$(gfid_text "$T/vol/b1/${directories[1]}"):0" "$T/vol/b$i"
    restart_brick vol/brick$i
done
heal vol full > "$T/log/full.out" 2>&1
ok "a walk goes on from its mark" test -e "$to_do"
not_ok "and does not begin anew" test -e "$done_before"
not_ok "the mark is gone afterwards" getfattr -n trusted.afr.mortar-walk "$b"
walk_heals "the next walk begins at the beginning"

# From here on the daemon walks.
start_shd vol
with_daemon=1
stop_brick vol/brick2
truncate -s 1000 "$b/large"; rm -r "$b/d1"
restart_brick vol/brick2
walk_heals "a file that is shorter and a subtree that is gone, by the daemon"

# A brick that was emptied is marked, so that nothing on it is believed, and is filled by the daemon without a walk.
stop_brick vol/brick2
find "$b" -mindepth 1 -delete
ok "a brick that is away and empty can be marked" heal vol mark-brick vol-client-1
restart_brick vol/brick2
ok "it is filled from the mark" wait_for 90 compare_bricks "${dirs[@]}"
ok "nothing is left to heal" wait_for 20 is_healed vol

# Without a mark only a walk can.
stop_brick vol/brick2
find "$b" -mindepth 1 -delete
restart_brick vol/brick2
walk_heals "an emptied brick without a mark"
start_mount vol "$T/a"
is "$(cat "$T/a/d5/sub/file" | wc -l)" 5 "a mount reads what was there"
stop_shd vol
done_testing
