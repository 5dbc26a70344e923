#!/bin/bash
# Field case C10: a mount that is started before any brick waits for one (60 s or more by default) and then works.
. "$(dirname "$0")/lib.sh"

volume vol 1
# whether the command returns before the mount works is its own choice
launch_mount vol "$T/m" &
launcher=$!
process_pid() { cat "$T/run/mount-m.pid" 2>/dev/null; }
status= # of the command, once it has ended
gave_up() { # the command has failed, or its daemon has ended
    if [ -z "$status" ]; then
        ! kill -0 $launcher 2>/dev/null || return 1
        wait $launcher
        status=$?
    fi
    [ "$status" != 0 ] || { [ -n "$(process_pid)" ] && is_gone "$(process_pid)"; }
}
if wait_for 6 gave_up; then fail "it does not give up within 6 s"; else pass "it does not give up within 6 s"; fi
start_brick vol/brick1
ok "it is mounted once the brick is there" wait_mounted "$T/m" 20
note_mount_pid "$T/m"
ok "and works" sh -c "echo hello > $T/m/f && grep -q hello $T/m/f"
done_testing
