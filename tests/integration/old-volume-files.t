#!/bin/bash
# Field case C15: the volume files that people wrote by hand in 2008, unmodified: two servers at 10.8.1.9 and 10.8.1.10
# (here network namespaces) that export a directory, and a client that mirrors over both. Then the other variant of that
# time: each server mirrors over its own disk and the other's, and the client knows one server only.
# timeout: 200
NEEDS_PROGRAMS="unshare"
. "$(dirname "$0")/lib.sh"

# Both servers name the same directory. Each sees one of its own there, in a mount namespace.
made=
[ -d /gfsvol/data ] || { mkdir -p /gfsvol/data 2>/dev/null && made=yes; } || skip_all "cannot make /gfsvol/data"
test_end=remove_gfsvol
remove_gfsvol() { [ -z "$made" ] || rmdir /gfsvol/data /gfsvol 2>/dev/null; }

cat > "$T/server-2008.vol" <<'VOL'
volume posix
  type storage/posix
  option directory /gfsvol/data
end-volume

volume plocks
  type features/posix-locks
  subvolumes posix
end-volume

volume writebehind
  type performance/write-behind
  option flush-behind off   # 'off' was the default then
  subvolumes plocks
end-volume

volume readahead
  type performance/read-ahead
  option page-size 128kB
  option page-count 4
  option force-atime-update off
  subvolumes writebehind
end-volume

volume brick
  type performance/io-threads
  option thread-count 4
  option cache-size 64MB
  subvolumes readahead
end-volume

volume server
  type protocol/server
  option transport-type tcp/server
  subvolumes brick
  option auth.ip.brick.allow 10.8.1.*,127.0.0.1
end-volume
VOL

cat > "$T/client-2008.vol" <<'VOL'
volume brick1
  type protocol/client
  option transport-type tcp/client
  option remote-host 10.8.1.9
  option remote-subvolume brick
end-volume

volume brick2
  type protocol/client
  option transport-type tcp/client
  option remote-host 10.8.1.10
  option remote-subvolume brick
end-volume

volume afr
  type cluster/afr
  subvolumes brick1 brick2
end-volume

volume writebehind
  type performance/write-behind
  option aggregate-size 0MB
  option flush-behind off
  subvolumes afr
end-volume

volume readahead
  type performance/read-ahead
  option page-size 128kB
  option page-count 4
  option force-atime-update off
  subvolumes writebehind
end-volume
VOL

# The servers' side of the other variant: server 1 at 10.8.1.9, and the same with the names exchanged at 10.8.1.10.
mirror_server() { # mirror_server OTHER_ADDRESS CHILD CHILD
    cat <<VOL
volume posix
  type storage/posix
  option directory /gfsvol/data
end-volume

volume disk
  type features/posix-locks
  subvolumes posix
end-volume

volume other
  type protocol/client
  option transport-type tcp/client
  option remote-host $1
  option remote-subvolume disk
end-volume

volume mirror
  type cluster/afr
  option afr-pending-xattr one,two
  subvolumes $2 $3
end-volume

volume writebehind
  type performance/write-behind
  option aggregate-size 1MB
  subvolumes mirror
end-volume

volume brick
  type performance/io-threads
  option thread-count 4
  subvolumes writebehind
end-volume

volume server
  type protocol/server
  option transport-type tcp/server
  subvolumes brick disk
  option auth.ip.brick.allow 10.8.1.*
  option auth.ip.disk.allow 10.8.1.*
end-volume
VOL
}

cat > "$T/one-server.vol" <<'VOL'
volume brick
  type protocol/client
  option transport-type tcp/client
  option remote-host 10.8.1.10
  option remote-subvolume brick
end-volume

volume writebehind
  type performance/write-behind
  option aggregate-size 1MB
  subvolumes brick
end-volume
VOL

start_server() { # start_server HOST VOLFILE_ID DIR
    mkdir -p "$3"
    printf '#!/bin/bash\nmount --bind %q /gfsvol/data && exec "$@"\n' "$3" > "$T/run/enter-$1"
    chmod +x "$T/run/enter-$1"
    start_brick --ns "$1" --under "unshare --mount --propagation private $T/run/enter-$1" "$T/$2.vol"
}

use() { # use MNT NAME DIR1 DIR2
    local m=$1 n=$2
    ok "$n: a tree is copied" cp -a /usr/share/doc/bash "$m/doc"
    ok "$n: it is the same" diff -r --no-dereference /usr/share/doc/bash "$m/doc"
    ok "$n: a large file" dd if=/dev/urandom of="$m/large" bs=1M count=8 conv=fsync
    ok "$n: the first server has it" cmp "$m/large" "$3/large"
    ok "$n: the second server has it" cmp "$m/large" "$4/large"
    ok "$n: removed" rm "$m/large"
    ok "$n: both servers hold the same" wait_for 15 compare_bricks --ignore-times "$3" "$4"
}

make_ns one 10.8.1.9
make_ns two 10.8.1.10
make_ns web 10.8.1.11

cp "$T/server-2008.vol" "$T/server1.vol"
cp "$T/server-2008.vol" "$T/server2.vol"
start_server one server1 "$T/data1"
is $? 0 "client-side: the first server starts"
start_server two server2 "$T/data2"
is $? 0 "client-side: the second server starts"
start_mount --ns web "$T/client-2008.vol" "$T/m"
use "$T/m" "client-side" "$T/data1" "$T/data2"
stop_mount "$T/m"
stop_brick server1
stop_brick server2

mirror_server 10.8.1.10 disk other > "$T/mirror1.vol"
mirror_server 10.8.1.9 other disk > "$T/mirror2.vol"
start_server one mirror1 "$T/data3"
is $? 0 "server-side: the first server starts"
start_server two mirror2 "$T/data4"
is $? 0 "server-side: the second server starts"
start_mount --ns web "$T/one-server.vol" "$T/n"
use "$T/n" "server-side" "$T/data3" "$T/data4"
kill_brick mirror1
ok "server-side: writing goes on when the other server dies" sh -c "echo later > $T/n/later"
is "$(cat "$T/data4/later")" later "server-side: the server that is left has it"
stop_mount "$T/n"
stop_brick mirror2
done_testing
