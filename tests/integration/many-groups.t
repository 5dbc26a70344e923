#!/bin/bash
# Field case C11: access that comes from the last of many supplementary groups.
. "$(dirname "$0")/lib.sh"

volume vol 1
start_bricks vol
start_mount vol "$T/m"
mkdir "$T/m/dir"
chgrp 5099 "$T/m/dir"
chmod 0770 "$T/m/dir"
for count in 1 16 32 33 93 1000 65536; do
    ok "$count groups" groupscreate "$T/m/dir/$count" $count 5099
done
is "$(ls "$T/m/dir" | wc -l)" 7 "all files are there"
not_ok "without the group it is refused" groupscreate "$T/m/dir/none" 100 5098
if command -v setpriv >/dev/null; then
    list=$(seq -s, 200000 200091)
    ok "93 groups by setpriv" setpriv --reuid 20001 --regid 20001 --groups "$list,5099" sh -c "echo x > $T/m/dir/setpriv"
fi
done_testing
