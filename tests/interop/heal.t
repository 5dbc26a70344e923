#!/bin/bash
# Our heal on GlusterFS's bricks: what its client and ours left is healed, alone and at the same time as its own daemon.
# timeout: 400
NEEDS_PROGRAMS="mortar-heal"
. "$(dirname "$0")/gl_lib.sh"

prepare() { # prepare MNT
    local m=$1 i
    mkdir -p "$m/dir/tree" "$m/to" "$m/many"
    for i in data meta attr short dir/gone dir/old-name dir/tree/leaf; do echo "old content of $i" > "$m/$i"; done
    for i in $(seq 60); do echo "$i" > "$m/many/$i"; done
}
change() { # change MNT
    local m=$1 i
    echo "newer content" > "$m/data" && chmod 0600 "$m/meta" && setfattr -n user.k -v new "$m/attr" &&
        echo new > "$m/dir/new" && rm "$m/dir/gone" && mv "$m/dir/old-name" "$m/dir/new-name" && mv "$m/dir/tree" "$m/to/tree" &&
        mkdir "$m/dir/sub" && ln -s target "$m/dir/sub/link" && ln "$m/data" "$m/to/hard" && truncate -s 3 "$m/short" &&
        dd if=/dev/urandom of="$m/big" bs=1M count=3 status=none || return
    for i in $(seq 1 2 60); do mv "$m/many/$i" "$m/to/$i" || return; done
    for i in $(seq 2 4 60); do echo "changed $i" > "$m/many/$i" || return; done
}
our_heal() { in_ns main timeout 100 mortar-heal --volfile-server=$GL_ADDR --volfile-id=$1 --socket="$T/run/none" >>"$T/log/our-heal.out" 2>&1; }
equal() { compare_bricks --ignore-times "$GL/bricks/$1"/b[123]; }
our_heal_is_done() { our_heal "$1"; gl_is_healed "$1" && equal "$1"; }
both_heal() { gl volume heal "$1" >/dev/null 2>&1; our_heal_is_done "$1"; }

gl_start
gl_volume vol 3
gl volume set vol cluster.self-heal-daemon off >/dev/null
for client in real ours; do
    $client
    m=$T/m-$client
    gl_mount vol "$m"
    ok "$client client: prepared" prepare "$m"
    wait_for 30 gl_is_healed vol
    gl_kill_brick vol 2
    ok "$client client: changed while a brick is away" change "$m"
    stop_mount "$m"
    gl_restart_bricks vol 3
    at_least "$(gl_heal_count vol)" 8 "$client client: there is something to heal"
    ok "$client client: our heal makes the real bricks equal" wait_for 60 our_heal_is_done vol || tail -n 20 "$T/log/our-heal.out"
    gl_mount vol "$m"
    is "$(cat "$m/data" "$m/to/hard" "$m/short" "$m/to/tree/leaf" "$m/to/7" "$m/many/6")" "newer content
newer content
oldold content of dir/tree/leaf
7
changed 6" "$client client: all of it reads as before"
    ok "$client client: removed" sh -c "rm -rf '$m'/*"
    stop_mount "$m"
done

gl volume set vol cluster.self-heal-daemon on >/dev/null
real
m=$T/m-both
gl_mount vol "$m"
ok "both heal: prepared" prepare "$m"
wait_for 30 gl_is_healed vol
gl_kill_brick vol 3
ok "both heal: changed while a brick is away" change "$m"
gl_restart_bricks vol 3
ok "both heal: the bricks become equal" wait_for 60 both_heal vol || tail -n 20 "$T/log/our-heal.out"
is "$(cat "$m/data" "$m/to/tree/leaf")" "newer content
old content of dir/tree/leaf" "both heal: all of it reads as before"
stop_mount "$m"
done_testing
