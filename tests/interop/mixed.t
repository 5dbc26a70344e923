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
# A GlusterFS brick knows no flags of rename.
echo one > "$T/ours/one"
echo two > "$T/ours/two"
ok "a rename with flags is refused" python3 -c '
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for flags in 1, 2: # NOREPLACE, EXCHANGE
    if libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), flags) != -1: sys.exit(1)
    if ctypes.get_errno() not in (errno.EINVAL, errno.EEXIST): sys.exit(os.strerror(ctypes.get_errno()))
' "$T/ours/one" "$T/ours/two"
is "$(cat "$T/ours/one" "$T/theirs/two" | tr '\n' ' ')" "one two " "and changes nothing"
stop_mount "$T/ours"
stop_mount "$T/theirs"
ok "no brick has anything pending" wait_for 15 is_clean "$(brick_dir vol/brick1)" "$(brick_dir vol/brick2)"
# Each brick stamps files with its own clock; GlusterFS's client sends times only as an attribute.
ok "both bricks hold the same" wait_for 15 compare_bricks --ignore-times "$(brick_dir vol/brick1)" "$(brick_dir vol/brick2)"
done_testing
