#!/bin/bash
# The heal daemon: it is told by bricks, shows what it does, keeps what cannot be healed apart and says why, and is quick
# (field cases C12 and C18).
# timeout: 500
NEEDS_PROGRAMS="mortar-heal mkfs.ext4"
. "$(dirname "$0")/lib.sh"

count=${HEAL_FILES:-3000}
volume vol 3
dirs=("$T/vol/b1" "$T/vol/b2" "$T/vol/b3")
# the second brick is a small file system that can be filled
truncate -s 150M "$T/small.img" && mkfs.ext4 -q -F -N 20000 "$T/small.img" && mount -o loop "$T/small.img" "$T/vol/b2" && rmdir "$T/vol/b2/lost+found" || skip_all "needs loop mounts"
test_end=unmount_small
unmount_small() { umount "$T/vol/b2" 2>/dev/null; rm -rf "$T"; }
start_bricks vol
start_shd vol
start_mount vol "$T/a"

mkdir "$T/a/d"
for ((i = 0; i < count; i++)); do echo "one $i" > "$T/a/d/f$i"; done
ok "nothing is pending at the beginning" wait_for 20 is_healed vol
kill_brick vol/brick2
for ((i = 0; i < count; i++)); do echo "two $i" > "$T/a/d/f$i"; done
sync -f "$T/a"
enough() { [ "$(pending "$T/vol/b1" | wc -l)" -ge $count ]; }
ok "all $count files are pending" wait_for 30 enough

begin=$(date +%s.%N)
summary=$(heal vol info summary)
took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
diag "summary of $count entries in $took s"
at_most "$took" "${SUMMARY_S:-5}" "a summary is quick"
# what was written last may be under way still, and is not counted then
all_counted() { [ "$(heal vol info summary | sed -n 's/^Number of entries in heal pending: //p' | tr '\n' ' ')" = "$count - $count " ]; }
ok "it counts them" wait_for 30 all_counted
is "$(heal vol statistics heal-count | grep -c "^Number of entries: $count$")" 2 "so does the index"

begin=$(date +%s.%N)
restart_brick vol/brick2
ok "the brick is healed" wait_for 120 is_healed vol
took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
diag "$count files healed in $took s after the brick's start"
at_most "$took" "${HEAL_S:-60}" "heal is quick"
ok "the bricks are equal" compare_bricks "${dirs[@]}"
like "$(heal vol statistics)" "Type of crawl: INDEX" "statistics: the crawl"
# in as many crawls as it took
at_least "$(heal vol statistics | awk '/^No. of entries healed:/ { n += $5 } END { print n }')" "$count" "statistics: what it healed"
like "$(heal vol status)" "vol-replicate-0: (idle|index)" "status"
is "$(heal vol watch; echo $?)" "Nothing waits for heal.
0" "watch ends when nothing is left"

# a full brick: what does not fit is named once, with brick and errno, and counted apart
kill_brick vol/brick2
dd if=/dev/urandom of="$T/a/too-large" bs=1M count=140 status=none
echo fits > "$T/a/fits"
sync -f "$T/a"
restart_brick vol/brick2
cannot() { heal vol info summary | grep -q 'entries that cannot be healed: 1'; }
ok "what does not fit is counted apart" wait_for 90 cannot
like "$(heal vol info)" '/too-large - Cannot be healed: ENOSPC on vol-client-1' "info says why and where"
like "$(heal vol --json info)" '"error": "ENOSPC"' "so does JSON"
ok "what fits is healed" wait_for 60 cmp "$T/a/fits" "$T/vol/b2/fits"
is "$(heal vol info summary | sed -n 's/^Number of entries in heal pending: //p' | sort -u)" 0 "nothing else is pending"
sleep 3 # it is tried again meanwhile
is "$(grep -c 'heal-failed.*too-large' "$T/log/shd-vol.log")" 1 "the log names it once"
rm "$T/a/too-large"
ok "once it is removed nothing is left" wait_for 60 is_healed vol

kill_brick vol/brick3
echo before > "$T/a/noticed"
restart_brick vol/brick3
ok "another brick is healed as well" wait_for 60 is_healed vol

# stopped in the middle, it goes on
ok "the daemon ends" stop_shd vol
kill_brick vol/brick3
echo again > "$T/a/d/again"
restart_brick vol/brick3
sleep 1
not_ok "without a daemon nothing is healed" is_healed vol
ok "the command heals by itself" heal vol
ok "healed by the command" wait_for 30 is_healed vol
start_shd vol
sees_bricks() { heal vol status | grep -q 'vol-replicate-0: \(idle\|index\)'; }
ok "a daemon that was just started finds the bricks" wait_for 20 sees_bricks
ok "the daemon can be told" heal vol
is "$(heal vol full | head -n 1)" "Launching heal operation to perform full self heal on volume vol has been successful " "a walk is launched"
walked() { heal vol statistics | grep -q 'Type of crawl: FULL' && heal vol status | grep -q ': idle'; }
ok "and ends" wait_for 120 walked
ok "the daemon ends once more" stop_shd vol
done_testing
