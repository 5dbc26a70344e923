#!/bin/bash
# Field case C9: two mounts count in transactions of one sqlite database for 10 s; the value is the number of commits.
. "$(dirname "$0")/lib.sh"

volume vol 2
start_bricks vol
start_mount vol "$T/a"
start_mount vol "$T/b"
ok "the database is made" sqlitecounter "$T/a/db" --init
for m in a b; do sqlitecounter "$T/$m/db" 10 > "$T/run/count.$m" 2>&1 & pids+=($!); done
wait "${pids[@]}"
commits=$(sed -n 's/^commits=\([0-9]*\).*/\1/p' "$T"/run/count.? | awk '{ n += $1 } END { print n }')
is "$(sqlitecounter "$T/a/db" --value)" "$commits" "the value is the number of commits"
is "$(sqlitecounter "$T/b/db" --value)" "$commits" "so it is through the other mount"
for m in a b; do
    like "$(cat "$T/run/count.$m")" '^commits=[0-9]+ busy=0 errors=0$' "mount $m: no errors"
    at_least "$(sed -n 's/^commits=\([0-9]*\).*/\1/p' "$T/run/count.$m")" 1 "mount $m: has its turn"
done
bricks_agree vol "both bricks hold the same"
done_testing
