#!/bin/bash
# Field case C7: a brick keeps its reserve free: writing ends with ENOSPC when that is reached, and a fallocate that fails
# leaves nothing allocated.
NEEDS_PROGRAMS="losetup mkfs.ext4"
. "$(dirname "$0")/lib.sh"

volume vol 1 --posix "reserve 30"
truncate -s 200M "$T/disk.img"
mkfs.ext4 -q -m 0 "$T/disk.img" || skip_all "no ext4 image can be made"
losetup -f >/dev/null 2>&1 || skip_all "no loop devices here"
mount -o loop "$T/disk.img" "$T/vol/b1" || skip_all "no loop mounts here"
used() { df --output=used -k "$T/vol/b1" | tail -n 1 | tr -d ' '; }
used_percent() { df -k "$T/vol/b1" | awk 'NR == 2 { printf "%.1f\n", 100 * $3 / ($3 + $4) }'; }

start_bricks vol
start_mount vol "$T/m"
dd if=/dev/zero of="$T/m/big" bs=1M count=300 conv=fsync 2>"$T/run/dd"
not_ok "writing 300 MB fails" test "$(stat -c %s "$T/m/big")" -ge $((300 << 20))
like "$(cat "$T/run/dd")" "No space left on device" "the reason is ENOSPC"
at_most "$(used_percent)" 72 "the disk is filled to 70 % ($(used_percent) %)"
at_least "$(used_percent)" 65 "and not much less"
not_ok "a new file cannot be written" dd if=/dev/zero of="$T/m/more" bs=1M count=1 conv=fsync
ok "a file can be removed" rm "$T/m/big"
rm -f "$T/m/more"
ok "the space is free again" wait_for 20 sh -c "[ \$(df --output=used -k $T/vol/b1 | tail -n 1) -lt 40000 ]"
ok "and can be written again" wait_for 20 dd if=/dev/zero of="$T/m/again" bs=1M count=20 conv=fsync

sync "$T/m/again"
before=$(used)
fallocate -l 1G "$T/m/reserved" 2>"$T/run/fallocate"
is $? 1 "fallocate of 1 GiB fails"
like "$(cat "$T/run/fallocate")" "No space left on device" "the reason is ENOSPC"
at_most $(($(used) - before)) 100 "nothing stays allocated (KiB)"
is "$(stat -c '%s %b' "$T/m/reserved" 2>/dev/null)" "0 0" "the file stays empty"
stop_mount "$T/m"
kill_brick vol/brick1
umount "$T/vol/b1"
done_testing
