#!/bin/bash
# What one side leaves to be healed, the other understands: pending counters and index entries of a mirror whose first
# brick was away. And ours heals what either left.
# timeout: 400
. "$(dirname "$0")/gl_lib.sh"

change_without_brick() { # change_without_brick MNT: with brick 1 away
    local m=$1
    echo "newer content" > "$m/data" && chmod 0600 "$m/meta" && setfattr -n user.k -v new "$m/attr" &&
        echo new > "$m/dir/new" && rm "$m/dir/gone" && mv "$m/dir/old-name" "$m/dir/new-name" &&
        mkdir "$m/dir/sub" && ln -s target "$m/dir/sub/link" && truncate -s 3 "$m/short"
}
prepare() { # prepare MNT
    local m=$1 f
    mkdir "$m/dir"
    for f in data meta attr short dir/gone dir/old-name; do echo "old content of $f" > "$m/$f"; done
}
is_changed() { # is_changed MNT PREFIX: reads what only brick 2 has
    local m=$1 p=$2
    is "$(cat "$m/data")" "newer content" "$p: content"
    is "$(stat -c %a "$m/meta")" 600 "$p: mode"
    is "$(getfattr --only-values -n user.k "$m/attr" 2>/dev/null)" new "$p: attribute"
    is "$(cd "$m/dir" && ls -A | tr '\n' ' ')" "new new-name sub " "$p: names"
    is "$(cat "$m/dir/new" "$m/dir/new-name") $(readlink "$m/dir/sub/link")" "new
old content of dir/old-name target" "$p: what the names stand for"
    is "$(cat "$m/short")" old "$p: size"
}
counters() { # counters BRICK CLIENT: of each changed file
    local f
    for f in data meta attr short dir; do echo "$f $(afr_of "$1/$f" "$2")"; done
}
blames() { # blames BRICK CLIENT PREFIX: the right counter of each
    local b=$1 c=$2 p=$3
    like "$(afr_of "$b/data" "$c")" '^[1-9][0-9]* [0-9]+ 0$' "$p: data is blamed for data"
    like "$(afr_of "$b/short" "$c")" '^[1-9][0-9]* [0-9]+ 0$' "$p: short is blamed for data"
    like "$(afr_of "$b/meta" "$c")" '^0 [1-9][0-9]* 0$' "$p: meta is blamed for metadata"
    like "$(afr_of "$b/attr" "$c")" '^0 [1-9][0-9]* 0$' "$p: attr is blamed for metadata"
    like "$(afr_of "$b/dir" "$c")" '^[0-9]+ [0-9]+ [1-9][0-9]*$' "$p: dir is blamed for entries"
    for f in data short meta attr dir; do
        pending "$b" | grep -q "$(gfid_text "$b/$f")" || { fail "$p: $f is in the index"; return; }
    done
    pass "$p: all are in the index"
}
gfid_text() { local g; g=$(gfid_of "$1"); echo "${g:0:8}-${g:8:4}-${g:12:4}-${g:16:4}-${g:20}"; }

for left_by in ours real; do
    if [ $left_by = ours ]; then seen_by=real; else seen_by=ours; fi
    v=by_$left_by m=$T/$left_by p="left by $left_by"
    volume $v 2
    $left_by
    start_bricks $v
    start_mount $v "$m"
    ok "$p: prepared" prepare "$m"
    wait_for 15 is_clean "$T/$v/b1" "$T/$v/b2"
    kill_brick $v/brick1
    ok "$p: changed while a brick is away" change_without_brick "$m"
    is_changed "$m" "$p"
    stop_mount "$m"
    stop_bricks
    blames "$T/$v/b2" $v-client-0 "$p"
    before=$(counters "$T/$v/b2" $v-client-0)

    $seen_by
    start_bricks $v
    start_mount $v "$m"
    is_changed "$m" "$p, seen by $seen_by"
    stop_mount "$m"
    is "$(counters "$T/$v/b2" $v-client-0)" "$before" "$p, seen by $seen_by: the counters stay until the heal" ||
        is_clean "$T/$v/b1" "$T/$v/b2"
    stop_bricks
    $left_by
    start_bricks $v
    start_mount $v "$m"
    is_changed "$m" "$p, seen by $left_by again"
    ok "$p: one more change on top" sh -c "echo newest > $m/data && [ \$(cat $m/data) = newest ]"
    stop_mount "$m"
    stop_bricks
    ours
    start_bricks $v
    ok "$p: ours heals it" heal $v
    ok "$p: nothing is left" wait_for 30 is_healed $v
    ok "$p: the bricks are equal" compare_bricks --ignore-times "$T/$v/b1" "$T/$v/b2"
    is "$(cat "$T/$v/b1/data" "$T/$v/b1/dir/new")" "newest
new" "$p: the brick that was away has what it missed"
    stop_bricks
done

# Our client leaves the pending heal on a real volume; the real heal daemon does it.
gl_start
gl_volume vol 2
ours
gl_mount vol "$T/m"
ok "our client, real volume: prepared" prepare "$T/m"
wait_for 15 gl_is_healed vol
gl_kill_brick vol 1
ok "our client, real volume: changed while a brick is away" change_without_brick "$T/m"
is_changed "$T/m" "our client, real volume"
wait_for 15 test -n "$(pending "$GL/bricks/vol/b2")"
blames "$GL/bricks/vol/b2" vol-client-0 "our client, real volume"
at_least "$(gl_heal_count vol)" 5 "our client, real volume: gluster volume heal info lists them"
gl_restart_bricks vol 2
ok "our client, real volume: connected to the returned brick" wait_for 30 gl_client_connected "$T/m" vol 1
is_changed "$T/m" "our client, real volume, brick back"
wait_for 30 gl volume heal vol # refused until the daemon is connected to both
ok "our client, real volume: the real daemon heals it" wait_for 60 gl_is_healed vol
is_changed "$T/m" "our client, real volume, healed"
stop_mount "$T/m"
ok "our client, real volume, healed: both bricks hold the same" wait_for 20 compare_bricks --ignore-times "$GL/bricks/vol/b1" "$GL/bricks/vol/b2"

# And our command on real bricks, while the real daemon is off.
gl volume set vol cluster.self-heal-daemon off >/dev/null
real
gl_mount vol "$T/n"
gl_kill_brick vol 2
ok "real volume: changed while a brick is away" sh -c "echo once more > $T/n/data && echo another > $T/n/dir/another && rm $T/n/dir/new && mkdir -p $T/n/one/two && chmod 0644 $T/n/meta"
stop_mount "$T/n"
gl_restart_bricks vol 2
our_heal() { in_ns main mortar-heal --volfile-server=$GL_ADDR --volfile-id=vol --socket none "$@"; }
like "$(our_heal info)" "/dir/another" "real volume: our info lists what is pending"
is "$(our_heal info | sed -n 's/^Number of entries: //p' | sort -n | tail -n 1)" "$(gl volume heal vol info | sed -n 's/^Number of entries: //p' | sort -n | tail -n 1)" "real volume: as many as GlusterFS's"
ok "real volume: our command heals it" our_heal
ok "real volume: nothing is left" wait_for 60 gl_is_healed vol
ok "real volume: both bricks hold the same" wait_for 20 compare_bricks --ignore-times "$GL/bricks/vol/b1" "$GL/bricks/vol/b2"
done_testing
