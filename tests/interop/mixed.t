#!/bin/bash
# One mirror of one real brick and one of ours, used by a real client and by ours at the same time.
# timeout: 300
. "$(dirname "$0")/gl_lib.sh"

volume vol 2
ours
start_brick vol/brick1
real
start_brick vol/brick2
start_mount vol "$T/theirs"
ours
start_mount vol "$T/ours"

exercise "$T/ours" "our client"
exercise_is_there "$T/theirs" "seen by the real client"
exercise_again "$T/theirs" "real client" 1
wait_for 5 test -e "$T/ours/again.1" # the real client's changes may be seen a moment late
exercise_is_there "$T/ours" "seen by our client"

# Nothing about appends from both: the real client tears them, also on its own bricks.
for pair in "ours theirs" "theirs ours"; do
    read -r holder other <<< "$pair"
    for kind in flock fcntl; do
        echo x > "$T/$holder/$kind"
        coproc lock { holdlock hold $kind "$T/$holder/$kind"; }
        lock_pid=$lock_PID
        read -r -t 20 answer <&"${lock[0]}"
        is "$answer" held "$kind: $holder holds it"
        is "$(holdlock try $kind "$T/$other/$kind")" refused "$kind held by $holder is refused to $other"
        echo end >&"${lock[1]}"
        wait "$lock_pid"
        is "$(holdlock try $kind "$T/$other/$kind")" granted "$kind given up by $holder is granted to $other"
    done
done
ok "many names from both clients at once" sh -c "
    (for i in \$(seq 150); do echo \$i > $T/ours/o\$i || exit 1; done) & a=\$!
    (for i in \$(seq 150); do echo \$i > $T/theirs/t\$i || exit 1; done) & b=\$!
    wait \$a && wait \$b"
is "$(ls "$T/ours" | grep -c '^[ot][0-9]')" 300 "all are there"
is "$(cat "$T"/ours/t? "$T"/ours/t?? "$T"/ours/t??? | sort -n | uniq | wc -l)" 150 "with their content"
stop_mount "$T/ours"
stop_mount "$T/theirs"
# A GlusterFS brick knows no flags of rename: what only our brick could do is pending for it, and there is no heal here.
todo "no brick has anything pending" "renames with flags" is_clean "$(brick_dir vol/brick1)" "$(brick_dir vol/brick2)"
todo "both bricks hold the same" "renames with flags" wait_for 5 compare_bricks "$(brick_dir vol/brick1)" "$(brick_dir vol/brick2)"
done_testing
