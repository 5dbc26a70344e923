#!/bin/bash
# Bricks go from one implementation to the other and back: what one has written the other serves, changes and hands on.
# timeout: 600
. "$(dirname "$0")/gl_lib.sh"

serve() { # serve ours|real VOLUME MNT
    $1
    start_bricks "$2"
    start_mount "$2" "$3"
}
unserve() { # unserve MNT
    stop_mount "$1"
    stop_bricks
}

for first in ours real; do
    if [ $first = ours ]; then second=real; else second=ours; fi
    v=from_$first m=$T/$first
    volume $v 2
    serve $first $v "$m"
    exercise "$m" "$first"
    unserve "$m"
    bricks_agree $v "$first: both bricks hold the same"
    turn=0
    for who in $second $first $second; do
        turn=$((turn + 1))
        serve $who $v "$m"
        exercise_is_there "$m" "from $first, turn $turn, $who"
        inodes=$(cd "$m" && stat -c '%n %i' file doc soft fifo null z many/f150)
        [ $turn = 1 ] || is "$inodes" "$inodes_before" "from $first, turn $turn: inode numbers are the same"
        exercise_again "$m" "from $first, turn $turn, $who" $turn
        exercise_is_there "$m" "from $first, turn $turn, $who, changed"
        inodes_before=$(cd "$m" && stat -c '%n %i' file doc soft fifo null z many/f150)
        unserve "$m"
        bricks_agree $v "from $first, turn $turn, $who: both bricks hold the same"
    done
done

# Bricks that a real glusterd has made, with its names.
gl_start
gl_volume vol 2
real
gl_mount vol "$T/g"
exercise "$T/g" "glusterd's volume"
stop_mount "$T/g"
gl volume stop vol force >/dev/null
volume_id=$(sed -n 's/^volume-id=//p' "$GL/work/vols/vol/info")
volume vol 2 --posix "volume-id $volume_id"
for i in 1 2; do sed -i "s|directory $T/vol/b$i|directory $GL/bricks/vol/b$i|; s|$T/vol/b$i/|$GL/bricks/vol/b$i/|" "$T/vol/brick$i.vol"; done
serve ours vol "$T/h"
exercise_is_there "$T/h" "glusterd's volume, served by ours"
exercise_again "$T/h" "glusterd's volume, served by ours" 1
unserve "$T/h"
gl volume start vol >/dev/null
wait_for 20 gl_all_online vol 2
real
gl_mount vol "$T/g"
exercise_is_there "$T/g" "glusterd's volume, back"
stop_mount "$T/g"
ok "glusterd's volume, back: both bricks hold the same" wait_for 20 compare_bricks "$GL/bricks/vol/b1" "$GL/bricks/vol/b2"
done_testing
