#!/bin/bash
# Pairs of bricks with a thin arbiter: GlusterFS's serves our client, ours serves GlusterFS's client; bricks and heal
# daemon are GlusterFS's in both.
# timeout: 400
. "$(dirname "$0")/gl_lib.sh"

[ -e "$(find /usr/lib -path '*glusterfs*features/thin-arbiter.so' | head -n 1)" ] || skip_all "needs GlusterFS's features/thin-arbiter"

ta_port=24100
ta_file() { # ta_file VOLUME DIR: as /etc/glusterfs/thin-arbiter.vol
    section ta-posix storage/posix "directory $2"
    section ta-thin-arbiter features/thin-arbiter "" ta-posix
    section ta-locks features/locks "notify-contention yes" ta-thin-arbiter
    section ta-upcall features/upcall "cache-invalidation off" ta-locks
    section ta-index features/index "xattrop-pending-watchlist trusted.afr.ta-;xattrop-dirty-watchlist trusted.afr.dirty;index-base $2/.glusterfs/indices" ta-upcall
    section "$2" debug/io-stats "unique-id $2" ta-index
    section ta-server protocol/server \
        "transport-type tcp;transport.socket.listen-port $ta_port;auth.addr.$2.allow *;auth-path $2" "$2"
}

pair() { # pair VOLUME: made, with its thin arbiter ($BRICK serves it), and started
    local v=$1
    ta=$GL/ta-$v
    mkdir -p "$GL/bricks/$v/b1" "$GL/bricks/$v/b2" "$ta/.glusterfs/indices" "$T/$v"
    ta_port=$((ta_port + 1))
    ta_file "$v" "$ta" > "$T/$v/ta.vol"
    start_brick "$v/ta" || { fail "the thin arbiter of $v starts"; exit 1; }
    gl volume create "$v" replica 2 thin-arbiter 1 "$GL_ADDR:$GL/bricks/$v/b1" "$GL_ADDR:$GL/bricks/$v/b2" "$GL_ADDR:$ta" force &&
        gl volume set "$v" client.ta-brick-port "$ta_port" && gl volume set "$v" network.ping-timeout 5 &&
        gl volume set "$v" cluster.heal-timeout 5 && gl volume start "$v"
} >"$T/log/pair.out" 2>&1

pair_file() { ls "$ta"/trusted.afr.* 2>/dev/null; }
blames() { afr_of "$(pair_file)" "$1-client-$2"; }
is_blamed() { [[ $(blames "$1" "$2") =~ [1-9] ]]; }
is_cleared() { [ -n "$(pair_file)" ] && ! is_blamed "$1" 0 && ! is_blamed "$1" 1; }
write_to() { timeout 20 bash -c 'echo "$2" > "$1"' - "$1" "$2" 2>/dev/null; }
has() { [ "$(timeout 20 cat "$1" 2>/dev/null)" = "$2" ]; }
is_refused() { ! write_to "$1" x && ! timeout 20 cat "$1" >/dev/null 2>&1; }

exercise_pair() { # exercise_pair VOLUME WHO: mounted at $m
    local v=$1 who=$2
    ok "$who: a file is written with both bricks" write_to "$m/f" old
    ok "$who: the pair has its file at the thin arbiter" wait_for 20 pair_file
    is "$(basename "$(pair_file)")" "trusted.afr.$v-ta-2.$(gl volume info "$v" | sed -n 's/^Volume ID: //p')" "$who: of that name"
    sleep 6 # GlusterFS keeps locks and marks for a second after a change
    gl_kill_brick "$v" 2
    ok "$who: one brick goes on alone" wait_for 30 write_to "$m/f" new
    ok "$who: and the other one is recorded" is_blamed "$v" 1
    ok "$who: and only that" eval "! is_blamed $v 0"
    gl_kill_brick "$v" 1
    ok "$who: the first one is away" wait_for 30 is_refused "$m/f"
    gl_restart_bricks "$v" 2
    ok "$who: with both bricks what was written alone is there" wait_for 60 has "$m/f" new
    gl volume heal "$v" >/dev/null 2>&1
    ok "$who: GlusterFS's heal daemon heals it" wait_for 60 has "$GL/bricks/$v/b2/f" new
    ok "$who: and takes the blame back" wait_for 90 is_cleared "$v"
    gl_kill_brick "$v" 1
    ok "$who: now the other brick goes on alone" wait_for 60 write_to "$m/f" newer
    ok "$who: with the first one recorded" is_blamed "$v" 0
}

real
gl_start

# ---- theirs serves ours ----
pair theirs || { fail "volume theirs starts" "$(cat "$T/log/pair.out")"; exit 1; }
ours
m=$T/mo
gl_mount theirs "$m"
exercise_pair theirs "our client, their thin arbiter"
stop_mount "$m"

# ---- ours serves theirs ----
ours
pair ours || { fail "volume ours starts" "$(cat "$T/log/pair.out")"; exit 1; }
real
m=$T/mr
gl_mount ours "$m"
exercise_pair ours "their client, our thin arbiter"
stop_mount "$m"
done_testing
