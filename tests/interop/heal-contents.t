#!/bin/bash
# Our heal daemon heals contents on GlusterFS's bricks, and between one of theirs and one of ours: by RCHECKSUM, whose sums
# must be the same bytes on both kinds. In a mirror of both kinds little is moved when little differs, which needs equal sums.
# timeout: 400
NEEDS_PROGRAMS="mortar-heal"
. "$(dirname "$0")/gl_lib.sh"

received_kb() { in_ns main awk '/lo:/ { sub(/.*:/, ""); print int($1 / 1024) }' /proc/net/dev; }
has_pending() { [ -n "$(pending "$1")" ]; }

one_mirror() { # one_mirror VOLUME KIND1 KIND2 POSIX_OPTIONS: brick 2 goes away
    local v=$1 m=$T/m-$1 p="$1" before kb i
    volume "$v" 2 --posix "$4"
    $2; start_brick "$v/brick1"
    $3; start_brick "$v/brick2"
    ours
    start_shd "$v"
    start_mount "$v" "$m"
    dd if=/dev/urandom of="$m/large" bs=1M count=24 status=none
    dd if=/dev/urandom of="$m/cut" bs=1M count=4 status=none
    truncate -s 400M "$m/sparse"
    echo small > "$m/small"
    sync -f "$m"
    kill_brick "$v/brick2"
    for i in 300 3000 6000; do dd if=/dev/urandom of="$m/large" bs=4k count=1 seek=$i conv=notrunc status=none; done
    truncate -s 1M "$m/cut"
    dd if=/dev/urandom of="$m/sparse" bs=64k count=1 seek=3000 conv=notrunc status=none
    echo smaller > "$m/small"
    sync -f "$m"
    wait_for 30 has_pending "$T/$v/b1"
    before=$(received_kb)
    $3; ok "$p: the brick returns" restart_brick "$v/brick2"
    ours
    ok "$p: contents are healed" wait_for 120 is_healed "$v"
    kb=$(($(received_kb) - before))
    ok "$p: the bricks hold the same" compare_bricks --ignore-times "$T/$v/b1" "$T/$v/b2"
    at_most "$kb" 14000 "$p: three windows of 1 MiB of 24, and little else, were moved ($kb KiB)"
    at_most "$(du -k "$T/$v/b2/sparse" | cut -f 1)" 1200 "$p: the sparse file stays sparse (KiB)"
    stop_mount "$m"
    stop_shd "$v"
    for i in 1 2; do stop_brick "$v/brick$i"; done
}

one_mirror theirs real real "fips-mode-rchecksum on"
one_mirror both-sha256 ours real "fips-mode-rchecksum on"
one_mirror both-md5 real ours "fips-mode-rchecksum off"
done_testing
