#!/bin/bash
# A wait for a lock that is interrupted ends at once, leaves what its process held before, and does not stand in the way
# of others.
# timeout: 120
NEEDS_PROGRAMS="python3"
. "$(dirname "$0")/lib.sh"

# locker FILE: commands from stdin: "read", "write", "unlock" take or give back bytes 0-9 without waiting; "wait SECONDS"
# waits that long for a write lock. Prints granted, refused or interrupted.
locker() {
    python3 -c '
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR)
class Over(Exception): pass
def over(*args): raise Over()
signal.signal(signal.SIGALRM, over)
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == "wait":
            signal.setitimer(signal.ITIMER_REAL, float(words[1]))
            fcntl.lockf(fd, fcntl.LOCK_EX, 10)
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            how = {"read": fcntl.LOCK_SH, "write": fcntl.LOCK_EX, "unlock": fcntl.LOCK_UN}[words[0]]
            fcntl.lockf(fd, how | (0 if words[0] == "unlock" else fcntl.LOCK_NB), 10)
        print("granted")
    except BlockingIOError: print("refused")
    except Over: print("interrupted")
    sys.stdout.flush()
' "$1"
}
tell() { # tell NAME COMMAND: the answer
    local -n pipe=$1
    local answer
    echo "$2" >&"${pipe[1]}"
    read -r -t 20 answer <&"${pipe[0]}"
    echo "$answer"
}

interrupt_waits() { # interrupt_waits VOLUME BRICKS
    local v=$1
    volume "$v" "$2"
    start_bricks "$v"
    start_mount "$v" "$T/$v-a"
    start_mount "$v" "$T/$v-b"
    echo 0123456789 > "$T/$v-a/file"
    coproc one { locker "$T/$v-a/file"; }
    exec 11<&"${one[0]}" 12>&"${one[1]}"; first=(11 12)
    coproc two { locker "$T/$v-b/file"; }
    exec 13<&"${two[0]}" 14>&"${two[1]}"; second=(13 14)
    is "$(tell first read)" granted "$v: a read lock through the first mount"
    is "$(tell second read)" granted "$v: and through the second"
    is "$(tell first "wait 1")" interrupted "$v: a wait for the write lock is interrupted"
    is "$(tell second unlock)" granted "$v: the second mount gives its lock back"
    is "$(tell second write)" refused "$v: the first still holds its read lock"
    is "$(tell second read)" granted "$v: and no more than that"
    is "$(tell second unlock)" granted "$v: the second mount gives that back"
    is "$(tell first "wait 5")" granted "$v: now the write lock is free"
    is "$(tell second "wait 1")" interrupted "$v: a wait through the second mount is interrupted"
    is "$(tell first unlock)" granted "$v: the first mount gives all back"
    is "$(tell first write)" granted "$v: nobody dead got it"
    eval "exec 11<&- 12>&- 13<&- 14>&- ${one[1]}>&- ${two[1]}>&-"
    wait
    stop_mount "$T/$v-a"; stop_mount "$T/$v-b"
}

interrupt_waits single 1
interrupt_waits pair 2
done_testing
