#!/bin/bash
# How often the network is crossed: round trips per operation as debug/io-stats counts them at the top of a mount's graph,
# uncontended, in a mirror of two bricks of ours.
# timeout: 300
CLIENT_LAYERS="features/utime performance/write-behind debug/io-stats"
. "$(dirname "$0")/lib.sh"
N=100
dumps=/var/run/gluster

has_dump() { grep -qs DUMP-END "$dumps/$1".dump.* "$dumps"/*."$1".dump.*; }
take_dump() { # the last one is in $T/dump
    local pid=${mount_pid[$mnt]}
    rm -f "$dumps"/*".$pid.dump."*
    kill -USR1 "$pid"
    wait_for 30 has_dump "$pid" || fail "a statedump of the mount is written"
    cat "$dumps"/*".$pid.dump."* > "$T/dump"
    rm -f "$dumps"/*".$pid.dump."*
}
number() { # number OP FIELD: from the dump, 0 when the operation was not done
    awk -F= -v op="fop.$1" -v field="$2" '$1 == op { n = split($2, part, ","); for (i = 1; i <= n; i++) { split(part[i], p, ":"); if (p[1] == field) sum += p[2] } } END { print sum + 0 }' "$T/dump"
}
declare -A calls_before trips_before
begin() { take_dump; for op in "$@"; do calls_before[$op]=$(number "$op" calls); trips_before[$op]=$(number "$op" trips); done; }
# budget OP TRIPS NAME: since begin, on the average
budget() {
    local calls=$(($(number "$1" calls) - ${calls_before[$1]})) trips=$(($(number "$1" trips) - ${trips_before[$1]}))
    # A single one opens a session, or finds the way.
    if [ "$calls" -lt 2 ]; then pass "$3 ($calls calls)"; return; fi
    at_most "$(awk -v t=$trips -v c=$calls 'BEGIN { print t / c }')" "$2" "$3 ($calls calls, $trips round trips)"
}
each() { local i; for ((i = 0; i < N; i++)); do printf '%s\n' "$1$i"; done; } # each PREFIX: the names

volume v 2
start_bricks v
mnt=$T/m
start_mount v "$mnt"
wait_connected v/brick1 "$mnt"
wait_connected v/brick2 "$mnt"
mkdir "$mnt/d" && cd "$mnt/d" || exit 1
touch first # the directory's session is open now

begin create write flush lookup
python3 - "$N" <<'PY'
import os, sys
for i in range(int(sys.argv[1])):
    fd = os.open(f'f{i}', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(fd, b'x' * 4096)
    os.close(fd)
PY
take_dump
budget create 1.3 "create"
at_least "$(($(number create trips) - ${trips_before[create]}))" $N "and they are counted"
budget write 0.1 "write"
budget flush 0.1 "close"
# On a machine that stands still for a second the lease has to be renewed, and a session to be opened again.
at_most "$(($(number lookup calls) - ${calls_before[lookup]}))" $((N / 3)) "look-ups of free names in a directory made here"

begin mkdir symlink link rename unlink rmdir setattr setxattr
python3 - "$N" <<'PY'
import os, sys
n = range(int(sys.argv[1]))
for i in n: os.mkdir(f'd{i}')
for i in n: os.symlink('nowhere', f's{i}')
for i in n: os.link(f'f{i}', f'l{i}')
for i in n: os.rename(f'l{i}', f'r{i}')
for i in n: os.unlink(f's{i}')
for i in n: os.chmod(f'f{i}', 0o600)
for i in n: os.setxattr(f'f{i}', 'user.a', b'b')
PY
take_dump
for op in mkdir symlink link rename unlink setattr setxattr; do budget $op 1.3 "$op"; done

cd / || exit 1
stop_mount "$mnt" # nothing is known to the new one
start_mount v "$mnt"
wait_connected v/brick1 "$mnt"
wait_connected v/brick2 "$mnt"
begin lookup open read flush stat
python3 - "$mnt/d" "$N" <<'PY'
import os, sys
os.chdir(sys.argv[1])
for again in range(2):
    for i in range(int(sys.argv[2])):
        fd = os.open(f'f{i}', os.O_RDONLY)
        os.read(fd, 8192)
        os.close(fd)
PY
take_dump
budget lookup 1.3 "look-up"
budget open 1.3 "open"
budget read 1.3 "read"
budget flush 0.1 "close of what was read"
at_most "$(($(number read calls) - ${calls_before[read]}))" $N "what was read is not read again"

begin stat lookup
python3 - "$mnt/d/f0" <<'PY'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(256)
AT_FDCWD, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS = -100, 0x2000, 0x7ff
for i in range(1000):
    if libc.statx(AT_FDCWD, sys.argv[1].encode(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, buf):
        raise OSError(ctypes.get_errno(), 'statx')
PY
take_dump
at_most "$(($(number stat calls) - ${calls_before[stat]}))" 200 "a statx that forbids caches is answered under a lease"

begin write fsync
python3 - "$mnt/d/new" "$N" <<'PY'
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o644)
for i in range(int(sys.argv[2])):
    os.write(fd, b'x' * 4096)
    os.fsync(fd)
os.close(fd)
PY
take_dump
budget write 0.1 "write before an fsync"
budget fsync 1.3 "fsync, without the write that it waits for below"

dd if=/dev/zero of="$mnt/d/rewritten" bs=8k count=512 2>/dev/null
begin read
python3 - "$mnt/d/rewritten" <<'PY'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(512):
    data = os.pread(fd, 8192, 8192 * i)
    os.pwrite(fd, data[::-1], 8192 * i)
os.close(fd)
PY
take_dump
at_most "$(($(number read calls) - ${calls_before[read]}))" 60 "reading and writing in turn does not read the same again"
stop_mount "$mnt"
done_testing
