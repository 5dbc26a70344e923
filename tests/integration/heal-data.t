#!/bin/bash
# Contents that a brick missed: what differs is copied, and nothing else; holes stay holes; writers go on; a disk that is
# full is told once.
# timeout: 600
NEEDS_PROGRAMS="mortar-heal fallocate fsyncer"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/heal-image.sh"

# ---- an image of which little changes ----
image_setup im 64
image_traffic im 3000
image_busy im
kill_brick im/brick3
ok "an image is made anew" dd if=/dev/urandom of="$T/m-im/image" bs=1M count=20 status=none
ok "and the brick returns" restart_brick im/brick3
ok "a file that was cut and written anew is healed" image_healed im
ok "the copies are equal" image_equal im
stop_mount "$T/m-im"
stop_shd im
for i in 1 2 3; do stop_brick "im/brick$i"; done

# ---- holes ----
volume h 2
start_bricks h
start_shd h
m=$T/m-h
start_mount h "$m"
for f in punched cut dense; do dd if=/dev/urandom of="$m/$f" bs=1M count=12 status=none; done
truncate -s 2G "$m/sparse"
dd if=/dev/urandom of="$m/sparse" bs=64k count=1 seek=20000 conv=notrunc status=none
sync -f "$m"
kill_brick h/brick2
fallocate -p -o 2M -l 8M "$m/punched"
truncate -s 1M "$m/cut"
truncate -s 3M "$m/cut"
dd if=/dev/urandom of="$m/sparse" bs=64k count=1 seek=10000 conv=notrunc status=none
dd if=/dev/zero of="$m/dense" bs=1M count=6 seek=3 conv=notrunc status=none
dd if=/dev/urandom of="$m/new-sparse" bs=4k count=1 seek=100000 status=none
echo small > "$m/small"
sync -f "$m"
restart_brick h/brick2
ok "files with holes are healed" wait_for 120 is_healed h
ok "the bricks are equal" compare_bricks "$T/h/b1" "$T/h/b2"
takes() { du -k "$1" | cut -f 1; }
for f in punched cut sparse new-sparse; do
    at_most "$(takes "$T/h/b2/$f")" $(($(takes "$T/h/b1/$f") + 64)) "$f takes no more space than on the good brick (KiB)"
done
stop_mount "$m"
stop_shd h
for i in 1 2; do stop_brick "h/brick$i"; done

# ---- a full disk ----
full_disk() {
    local m=$T/m-f d=$T/f/b2
    volume f 2
    truncate -s 60M "$T/disk.img"
    mkfs.ext4 -q -m 0 "$T/disk.img" 2>/dev/null && mount -o loop "$T/disk.img" "$d" 2>/dev/null || return
    start_bricks f
    start_shd f
    start_mount f "$m"
    echo first > "$m/large"; echo first > "$m/other"
    sync -f "$m"
    kill_brick f/brick2
    dd if=/dev/urandom of="$m/large" bs=1M count=100 status=none
    echo second > "$m/other"
    sync -f "$m"
    restart_brick f/brick2
    told() { grep -c "heal-failed.*$(gfid_text "$T/f/b1/large").*err=ENOSPC" "$T/log/shd-f.log"; }
    is_told() { [ "$(told)" -ge 1 ]; }
    ok "a heal that finds no space is told" wait_for 120 is_told
    like "$(grep heal-failed "$T/log/shd-f.log" | head -n 1)" "brick=f-client-1" "with its brick"
    ok "other files are healed meanwhile" wait_for 60 cmp "$T/f/b1/other" "$d/other"
    heal f >/dev/null 2>&1 # tries it again
    sleep 2
    is "$(told)" 1 "and it is told once"
    ok "the file stays blamed" test -n "$(pending "$T/f/b1")"
    ok "readers get the good copy" cmp "$m/large" "$T/f/b1/large"
    stop_mount "$m"
    stop_shd f
    stop_brick f/brick1; stop_brick f/brick2
    umount "$d"
}
gfid_text() { gfid_of "$1" | sed 's/\(........\)\(....\)\(....\)\(....\)/\1-\2-\3-\4-/'; }
if losetup -f >/dev/null 2>&1 && command -v mkfs.ext4 >/dev/null; then full_disk; fi
done_testing
