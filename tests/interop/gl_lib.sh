# The harness of the tests against the real GlusterFS packages (Debian's glusterfs-server and glusterfs-client, 10.3):
# everything of integration/lib.sh, and a glusterd of the test's own, in the test's network namespace and directory.
#
#   ours / real          which programs start_brick and start_mount use from here on
#   gl_start             starts glusterd, at address $GL_ADDR
#   gl WORDS...          the gluster command
#   gl_volume NAME N     makes and starts a volume of one brick, or a mirror of N, in $T/gl/bricks/NAME/b1...
#   gl_mount NAME MNT [ARGS]   mounts it with the programs chosen by ours / real, through --volfile-server
#   gl_kill_brick NAME N       SIGKILL
#   gl_restart_bricks NAME     starts those that are not running
#
# "ours" is mortarfs. (With TEST_BRICK=glusterfsd TEST_MOUNT=glusterfs ours is the real one as well, which shows that a
# test itself is right.)

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
NEEDS_PROGRAMS="glusterd glusterfsd glusterfs gluster ${NEEDS_PROGRAMS:-}"
. "$interop/../integration/lib.sh"
. "$here/exercise.sh"

OUR_BRICK=$BRICK OUR_MOUNT=$MOUNT
ours() { BRICK=$OUR_BRICK MOUNT=$OUR_MOUNT; }
real() { BRICK=glusterfsd MOUNT=glusterfs; }

GL_ADDR=198.18.0.1
GL=$T/gl

# "heal info" is a program of its own that knows the socket by its usual name only, hence a /run of its own.
gl() {
    in_ns main unshare --mount --propagation private bash -c 'mount -t tmpfs none /run &&
        ln -s "$0" /run/glusterd.socket && exec gluster --mode=script --glusterd-sock="$0" "$@"' "$GL/run/glusterd.socket" "$@"
}
gl_answers() { gl volume list; }

gl_start() {
    ip -n "$ns_prefix-main" addr add "$GL_ADDR/32" dev lo
    mkdir -p "$GL/work" "$GL/run" "$GL/log" "$GL/bricks"
    cat > "$GL/glusterd.vol" <<VOL
volume management
    type mgmt/glusterd
    option working-directory $GL/work
    option run-directory $GL/run
    option logging-directory $GL/log
    option glusterd-sockfile $GL/run/glusterd.socket
    option transport-type socket
    option transport.socket.listen-port 24007
    option ping-timeout 0
    option event-threads 1
    option max-port 60999
end-volume
VOL
    in_ns main glusterd -f "$GL/glusterd.vol" -p "$GL/run/glusterd.pid" -l "$T/log/glusterd.log" </dev/null >/dev/null 2>&1
    wait_for 30 gl_answers || { fail "glusterd starts"; exit 1; }
}

gl_volume() {
    local v=$1 n=$2 i bricks=() replica=
    for ((i = 1; i <= n; i++)); do mkdir -p "$GL/bricks/$v/b$i"; bricks+=("$GL_ADDR:$GL/bricks/$v/b$i"); done
    [ "$n" = 1 ] || replica="replica $n"
    # the command warns that a mirror of two can split its brain
    gl volume create "$v" $replica "${bricks[@]}" force </dev/null >"$T/log/gl-$v.out" 2>&1 &&
        gl volume start "$v" >>"$T/log/gl-$v.out" 2>&1 || { fail "volume $v starts" "$(cat "$T/log/gl-$v.out")"; exit 1; }
    wait_for 20 gl_all_online "$v" "$n"
}

gl_mount() { # gl_mount NAME MNT [ARGS...]
    local v=$1 mnt=$2
    shift 2
    start_mount --volfile-server=$GL_ADDR --volfile-id="$v" "$mnt" "$@"
}

gl_brick_pid() { cat "$GL/run/vols/$1/$GL_ADDR${GL//\//-}-bricks-$1-b$2.pid" 2>/dev/null; }
gl_kill_brick() {
    local p
    p=$(gl_brick_pid "$1" "$2")
    end_pid "$p" KILL
    wait_for 10 is_gone "$p"
}
# How many bricks run.
gl_online() { gl volume status "$1" --xml | tr -d '\n' | grep -o '<path>[^<]*/b[0-9]*</path>[^/]*</peerid> *<status>1</status>' | wc -l; }
gl_all_online() { [ "$(gl_online "$1")" = "$2" ]; }
# glusterd starts a brick only once it has noticed that the old one is gone.
gl_start_missing() { gl volume start "$1" force && gl_all_online "$1" "$2"; }
gl_restart_bricks() { wait_for 30 gl_start_missing "$1" "$2"; } # gl_restart_bricks NAME COUNT
gl_client_connected() { # gl_client_connected MNT NAME BRICK_NUMBER
    local port
    port=$(gl volume status "$2" "$GL_ADDR:$GL/bricks/$2/b$3" --xml | grep -o '<port>[0-9]*' | head -n 1)
    in_ns "${mount_ns[$1]}" ss -Htnp state established "dport = :${port#<port>}" | grep -q "pid=${mount_pid[$1]},"
}
gl_heal_count() { gl volume heal "$1" info 2>/dev/null | sed -n 's/^Number of entries: //p' | awk '{ n += $1 } END { print n + 0 }'; }
gl_is_healed() { [ "$(gl_heal_count "$1")" = 0 ]; }

gl_clients_rejected() { # cases of the POSIX suite that fail with the real client, whoever serves
    sed 's/#.*//; /^ *$/d; s/^/--skip /' "$interop/posix-skip.txt"
}
