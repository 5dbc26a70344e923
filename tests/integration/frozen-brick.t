#!/bin/bash
# Field case C4: a brick that stops answering (SIGSTOP) holds a write up for 5 s at most, or for the time that is set.
# timeout: 200
. "$(dirname "$0")/lib.sh"

write_while_frozen() { # write_while_frozen VOLUME: seconds
    pause_brick "$1/brick2"
    seconds timeout -k 1 60 dd if=/dev/zero of="$T/$1.m/file" bs=4k count=1 conv=fsync,notrunc 2>"$T/run/dd"
}

volume vol 3
start_bricks vol
start_mount vol "$T/vol.m"
echo before > "$T/vol.m/file"
sync "$T/vol.m/file"
took=$(write_while_frozen vol)
is $? 0 "the write succeeds" || diag "$(cat "$T/run/dd")"
at_most "$took" 5 "it is back within 5 s ($took s)"
took=$(seconds timeout -k 1 30 sh -c "echo again > $T/vol.m/other" 2>/dev/null)
at_most "$took" 1 "the next operation waits no more ($took s)"
is "$(head -c 2 "$T/vol/b1/file" | xxd -p)" 0000 "a brick that answers has the data"
resume_brick vol/brick2
wait_for 30 is_connected "$T/vol.m" vol/brick2
is "$(head -c 2 "$T/vol.m/file" | xxd -p)" 0000 "reading gives what was written, not what the frozen brick holds"
stop_mount "$T/vol.m"

for limit in 2 8; do
    volume set$limit 3 --client "ping-timeout $limit"
    start_bricks set$limit
    start_mount set$limit "$T/set$limit.m"
    echo before > "$T/set$limit.m/file"
    sync "$T/set$limit.m/file"
    took=$(write_while_frozen set$limit)
    is $? 0 "ping-timeout $limit: the write succeeds"
    at_most "$took" $((limit + 1)) "ping-timeout $limit: it is back in that time ($took s)"
    resume_brick set$limit/brick2
    stop_mount "$T/set$limit.m"
done
done_testing
