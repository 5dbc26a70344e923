# The harness of the integration tests: volume files, brick and mount processes, network namespaces, and the end of all
# that. A test is a bash script tests/integration/NAME.t:
#
#   #!/bin/bash
#   # timeout: 300
#   . "$(dirname "$0")/lib.sh"
#   volume vol 2                      # volume files for replica 2 in $T/vol: brick1.vol brick2.vol client.vol
#   start_bricks vol
#   start_mount vol "$T/a"
#   ok "a file can be made" touch "$T/a/f"
#   done_testing
#
# Everything of a test lives in the directory $T and in network namespaces of its own, so that tests can run side by
# side, and nothing listens outside. All processes are ended by the pid we started, at the end of the test whatever
# happens. KEEP=1 leaves $T (and prints it).
#
# Programs: mortarfs plays bricks and mounts. Since it takes glusterfsd's and glusterfs's command line, the same tests
# run with the real ones: TEST_BRICK=glusterfsd TEST_MOUNT=glusterfs (either or both) shows what those do.
#
# Variables a test may set before it sources this file: NEEDS_PROGRAMS="a b" (skip without them).

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
. "$here/volumes.sh"

MORTAR_BUILD=${MORTAR_BUILD:-$top/build}
PATH=$MORTAR_BUILD/bin:$MORTAR_BUILD/tests/programs:$MORTAR_BUILD/tests/posix:$here:$PATH
BRICK=${TEST_BRICK:-mortarfs}
MOUNT=${TEST_MOUNT:-mortarfs}
MOUNT_OPTIONS=${TEST_MOUNT_OPTIONS:-} # more words for the command line of every mount
START_S=${TEST_START_S:-20}           # how long a brick or mount may take to come up

# ---- What the machine must offer --------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -c /dev/fuse ] || skip_all "needs /dev/fuse"
for program in "$BRICK" "$MOUNT" ip nsenter ss setfattr getfattr ${NEEDS_PROGRAMS:-}; do
    command -v "$program" >/dev/null || skip_all "needs the program $program"
done

# ---- Life of the test -------------------------------------------------------------------------------------------

test_name=$(basename "$0" .t)
T=$(mktemp -d "${TMPDIR:-/tmp}/mortar-$test_name.XXXXXX") || exit 1
ns_prefix=mt$$
declare -A brick_pid brick_command brick_ns mount_pid mount_ns shd_pid
chmod 0755 "$T" # other users work in the mounts
mkdir "$T/run" "$T/log"

# Ends a process that we started, known by its command line naming $T.
end_pid() { # end_pid PID SIGNAL
    [ -n "${1:-}" ] || return 0
    grep -qFa "$T" "/proc/$1/cmdline" 2>/dev/null || return 0
    kill "-$2" "$1" 2>/dev/null
}
is_gone() { [ ! -d "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

cleanup() {
    local status=$? p f
    trap - EXIT TERM INT
    for p in $(jobs -p); do kill -9 "$p" 2>/dev/null; done
    if [ $status != 0 ]; then
        for f in "$T"/log/*; do [ -s "$f" ] && { diag "--- end of ${f##*/}"; tail -n 15 "$f" | sed 's/^/# /'; }; done
    fi
    sweep "$T" "$ns_prefix"
    [ -z "${test_end:-}" ] || $test_end
    [ ! -e "$T" ] || diag "kept $T"
    exit $status
}
trap cleanup EXIT
trap 'exit 143' TERM INT
setsid "$here/sweep" --after $$ "$T" "$ns_prefix" </dev/null >/dev/null 2>&1 &
disown

# ---- Name spaces as hosts ---------------------------------------------------------------------------------------
# Hosts are namespaces joined by a bridge in a further one; make_ns NAME ADDR/LEN gives a host an address on it. The
# host "main", with loopback only, is where everything lives that is not put elsewhere.

in_ns() { local n=$1; shift; nsenter "--net=/run/netns/$ns_prefix-$n" "$@"; }

new_ns() {
    ip netns add "$ns_prefix-$1" || { fail "a network namespace can be made"; exit 1; }
    ip -n "$ns_prefix-$1" link set lo up
}

make_ns() { # make_ns NAME ADDR[/LEN]
    local addr=$2 end=v$1
    [[ $addr == */* ]] || addr=$addr/24
    if [ ! -e "/run/netns/$ns_prefix-switch" ]; then
        new_ns switch
        ip -n "$ns_prefix-switch" link add br0 type bridge && ip -n "$ns_prefix-switch" link set br0 up
    fi
    new_ns "$1"
    ip -n "$ns_prefix-$1" link add eth0 type veth peer name "$end" netns "$ns_prefix-switch" || exit 1
    ip -n "$ns_prefix-$1" addr add "$addr" dev eth0
    ip -n "$ns_prefix-$1" link set eth0 up
    ip -n "$ns_prefix-switch" link set "$end" master br0 up
}

cut_ns() { ip -n "$ns_prefix-switch" link set "v$1" down; }   # packets to and from the host are lost
join_ns() { ip -n "$ns_prefix-switch" link set "v$1" up; }

new_ns main

# ---- Bricks -----------------------------------------------------------------------------------------------------
# A brick is named by its volume file: vol/brick1 for $T/vol/brick1.vol.

brick_id() { local f=${1%.vol}; echo "${f#"$T"/}"; }
listens() { in_ns "$1" ss -Hltn "sport = :$2" | grep -q .; }
port_in() { awk '$1 == "option" && $2 ~ /(^|\.)listen-port$/ { print $3 }' "$1" | tail -n 1; }

# start_brick [--ns NAME] [--under "COMMAND WORDS"] VOLFILE [ARGS...]: waits until the port is open.
start_brick() {
    local ns=main under= file id tag
    while :; do
        case $1 in
            --ns) ns=$2; shift 2;;
            --under) under=$2; shift 2;;
            *) break;;
        esac
    done
    file=$1; shift
    [[ $file == /* ]] || file=$T/$file
    [[ $file == *.vol ]] || file=$file.vol
    id=$(brick_id "$file"); tag=${id//\//-}
    # the real brick process leaves making this to glusterd
    if [ "$BRICK" = glusterfsd ] && grep -q features/index "$file"; then mkdir -p "$(brick_dir "$id")/.glusterfs/indices"; fi
    brick_ns[$id]=$ns
    brick_command[$id]="$under $BRICK -f $file -p $T/run/$tag.pid -l $T/log/$tag.log --process-name brick $*"
    restart_brick "$id"
}

# Starts a brick again as it was started before.
restart_brick() {
    local id=$1 tag=${1//\//-} ns=${brick_ns[$1]} port
    port=$(port_in "$T/$id.vol"); port=${port:-24007}
    rm -f "$T/run/$tag.pid"
    # no inherited pipes: a daemon would keep whoever reads this test's output waiting
    in_ns "$ns" ${brick_command[$id]} </dev/null >>"$T/log/$tag.out" 2>&1 || { diag "$id: $(tail -n 5 "$T/log/$tag.out")"; return 1; }
    wait_for "$START_S" test -s "$T/run/$tag.pid" || { diag "$id writes no pid file"; return 1; }
    brick_pid[$id]=$(cat "$T/run/$tag.pid")
    wait_for "$START_S" listens "$ns" "$port" || { diag "$id does not listen on $port"; return 1; }
}

start_bricks() { # start_bricks VOLUME [ARGS...]: all of a volume
    local v=$1 f
    shift
    for f in "$T/$v"/brick*.vol; do
        start_brick "$f" "$@" || { fail "the brick ${f##*/} starts"; exit 1; }
    done
}

kill_brick() { # kill_brick ID [SIGNAL]: waits for the end
    local p=${brick_pid[$1]}
    end_pid "$p" "${2:-KILL}"
    wait_for 10 is_gone "$p"
}
stop_bricks() { # all that run
    local id
    for id in "${!brick_pid[@]}"; do stop_brick "$id"; unset "brick_pid[$id]"; done
}
stop_brick() { kill_brick "$1" TERM; }
pause_brick() { end_pid "${brick_pid[$1]}" STOP; }
resume_brick() { end_pid "${brick_pid[$1]}" CONT; }
brick_runs() { ! is_gone "${brick_pid[$1]}"; }
brick_dir() { awk '$1 == "option" && $2 == "directory" { print $3; exit }' "$T/$1.vol"; }

# ---- Mounts -----------------------------------------------------------------------------------------------------

is_mounted() { awk -v m="$1" '$2 == m && $3 ~ /^fuse/ { found = 1 } END { exit !found }' /proc/mounts; }
works() { is_mounted "$1" && timeout 5 stat "$1/." && timeout 5 ls "$1" >/dev/null; }
wait_mounted() { wait_for "${2:-$START_S}" works "$1"; } # wait_mounted MNT [SECONDS]

# launch_mount [--ns NAME] VOLUME|VOLFILE|--volfile-server=... MNT [ARGS...]: without waiting. A volume's name stands for
# its client.vol.
launch_mount() {
    local ns=main source=() mnt tag
    if [ "$1" = --ns ]; then ns=$2; shift 2; fi
    while [[ $1 == --volfile-* ]]; do source+=("$1"); shift; done
    if [ ${#source[@]} = 0 ]; then
        if [[ $1 == *.vol ]]; then source=(-f "$1"); else source=(-f "$T/$1/client.vol"); fi
        shift
    fi
    mnt=$1; shift
    tag=mount-${mnt##*/}
    mkdir -p "$mnt"
    rm -f "$T/run/$tag.pid"
    mount_ns[$mnt]=$ns
    in_ns "$ns" "$MOUNT" "${source[@]}" -p "$T/run/$tag.pid" -l "$T/log/$tag.log" $MOUNT_OPTIONS "$@" "$mnt" \
        </dev/null >>"$T/log/$tag.out" 2>&1
}

note_mount_pid() { mount_pid[$1]=$(cat "$T/run/mount-${1##*/}.pid" 2>/dev/null); }

start_mount() { # the same, waits until it works; ends the test when it does not
    local words=("$@") mnt
    [ "$1" != --ns ] || shift 2
    while [[ $1 == --volfile-* ]]; do shift; mnt=$1; done
    mnt=${mnt:-$2}
    if launch_mount "${words[@]}" && wait_mounted "$mnt"; then
        note_mount_pid "$mnt"
        return 0
    fi
    note_mount_pid "$mnt"
    fail "$mnt is mounted" "$(tail -n 5 "$T/log/mount-${mnt##*/}.out")"
    exit 1
}

# Whether the process of a mount has a connection to a brick's port (a brick restarted a moment ago: again).
is_connected() { # is_connected MNT BRICK
    local port
    port=$(port_in "$T/$2.vol")
    in_ns "${mount_ns[$1]}" ss -Htnp state established "dport = :${port:-24007}" | grep -q "pid=${mount_pid[$1]},"
}
wait_connected() { # wait_connected BRICK MNT...: all of them; the next try of a client may take some seconds
    local brick=$1 m
    shift
    for m in "$@"; do wait_for 30 is_connected "$m" "$brick" || return 1; done
}

stop_mount() { # unmounts and waits for the end of the process
    local mnt=$1 pid=${mount_pid[$1]:-}
    wait_for 10 umount "$mnt" || umount -l "$mnt"
    [ -z "$pid" ] || wait_for 10 is_gone "$pid" || { end_pid "$pid" KILL; return 1; }
    unset "mount_pid[$mnt]"
}

# ---- Heal -------------------------------------------------------------------------------------------------------

# start_shd VOLUME [ARGS...]: a heal daemon; its log is $T/log/shd-VOLUME.log.
start_shd() {
    local v=$1
    shift
    rm -f "$T/run/shd-$v.pid"
    in_ns main "$MOUNT" -f "$T/$v/shd.vol" -p "$T/run/shd-$v.pid" -l "$T/log/shd-$v.log" -S "$T/run/shd-$v.socket" \
        --process-name glustershd --client-pid=-6 "$@" </dev/null >>"$T/log/shd-$v.out" 2>&1 ||
        { fail "the heal daemon of $v starts" "$(tail -n 5 "$T/log/shd-$v.out")"; exit 1; }
    wait_for "$START_S" test -s "$T/run/shd-$v.pid" || { fail "the heal daemon writes its pid"; exit 1; }
    shd_pid[$v]=$(cat "$T/run/shd-$v.pid")
}
stop_shd() { end_pid "${shd_pid[$1]}" "${2:-TERM}"; wait_for 20 is_gone "${shd_pid[$1]}"; }

# heal VOLUME WORDS...: the heal tool on a volume, in the host of its bricks.
heal() { local v=$1; shift; in_ns main mortar-heal --volfile "$T/$v/client.vol" --socket "$T/run/shd-$v.socket" "$@"; }

# Nothing is pending or marked on any brick of the volume.
is_healed() { local f; for f in "$T/$1"/brick*.vol; do is_clean "$(brick_dir "$(brick_id "$f")")" || return 1; done; }

# ---- Looking at bricks ------------------------------------------------------------------------------------------

# Files of a brick that other bricks may need healing for: names in its index. "DIR" is the brick's directory.
pending() { find "$1/.glusterfs/indices/xattrop" -mindepth 1 -name '????????-????-????-????-????????????' ! -name 'xattrop-*' -printf '%f\n' 2>/dev/null; }
dirty() { find "$1/.glusterfs/indices/dirty" -mindepth 1 -name '????????-????-????-????-????????????' ! -name 'dirty-*' -printf '%f\n' 2>/dev/null; }
is_clean() { local d; for d in "$@"; do [ -z "$(pending "$d")$(dirty "$d")" ] || return 1; done; }
gfid_of() { getfattr -h --absolute-names -n trusted.gfid -e hex --only-values "$1" 2>/dev/null | xxd -p -c 16; }
afr_of() { # afr_of PATH CLIENT: the three counters against that client, as "data metadata entry", or nothing
    local hex
    hex=$(getfattr -h --absolute-names -n "trusted.afr.$2" -e hex "$1" 2>/dev/null | sed -n 's/^trusted.afr.*=0x//p')
    [ -z "$hex" ] || echo "$((16#${hex:0:8})) $((16#${hex:8:8})) $((16#${hex:16:8}))"
}

# What the POSIX suite must not skip on our mounts. Left out, because a volume need not have them: atime (kept or not by
# mount options), tmpfile, separate-locks (GlusterFS's wire has one kind of lock), big-xattr (the bricks' file system).
must_have() {
    [ "$MOUNT" != mortarfs ] || echo --features \
        acl,user-xattr,trusted-xattr,devices,fallocate,punch,zero-range,seek-hole,copy-file-range,direct,rename-flags,ofd-locks,shared-mmap,dir-seek,ids
}

# bricks_agree VOLUME: once the last operations are closed, all bricks hold the same: one case.
bricks_agree() { # bricks_agree VOLUME NAME [OPTIONS of compare_bricks...]
    local dirs=() f
    for f in "$T/$1"/brick*.vol; do dirs+=("$(brick_dir "$(brick_id "$f")")"); done
    if ! wait_for 15 is_clean "${dirs[@]}"; then
        fail "$2" "still pending: $(for f in "${dirs[@]}"; do pending "$f"; dirty "$f"; done | sort -u | head -n 5 | tr '\n' ' ')"
        return 1
    fi
    ok "$2" compare_bricks "${@:3}" "${dirs[@]}"
}
