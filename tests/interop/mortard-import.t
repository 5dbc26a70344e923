#!/bin/bash
# Volumes of the real glusterd are taken over in place, with data and a pending heal, and go back.
# timeout: 300
. "$(dirname "$0")/gl_lib.sh"

m() { in_ns main mortar --mode=script --glusterd-sock="$T/mrun/mortard.socket" "$@" 2>&1; }
start_mortard() { # in glusterd's own folder
    in_ns main mortard -p "$T/mrun/mortard.pid" --xlator-option management.working-directory="$GL/work" \
        --xlator-option management.run-directory="$T/mrun" --xlator-option management.logging-directory="$T/log" \
        --xlator-option management.glusterd-sockfile="$T/mrun/mortard.socket" </dev/null >"$T/log/mortard.out" 2>&1
}
end_daemon() { # end_daemon PIDFILE
    local p
    p=$(cat "$1")
    end_pid "$p" TERM
    wait_for 30 is_gone "$p"
}
online() { [ "$(m volume status rep --xml | grep -c '<status>1</status>')" = "$1" ]; }
healed() { ! m volume heal rep info | grep -q 'Number of entries: [^0]'; }

gl_start
gl_volume rep 2
real
gl_mount rep "$T/a"
ok "data on a volume of the real daemon" cp -a /usr/share/doc/bash "$T/a/doc"
gl volume set rep network.ping-timeout 9 >/dev/null
gl volume heal rep disable >/dev/null
gl_kill_brick rep 2
ok "a change that one brick misses" sh -c "echo missed > $T/a/missed && echo more >> $T/a/doc/copyright"
umount "$T/a"
before=$(gl volume info rep | grep -v Status)
gl volume stop rep >/dev/null 2>&1
end_daemon "$GL/run/glusterd.pid"

mkdir "$T/mrun"
ok "mortard starts in glusterd's folder" start_mortard
is "$(m volume list)" "No volumes present in cluster" "it takes over nothing by itself"
is "$(m import --dry-run)" "rep: can be taken over, 2 bricks" "it says what would happen"
is "$(m volume list)" "No volumes present in cluster" "which does not happen then"
is "$(m import)" "rep: taken over, 2 bricks" "the volume is taken over"
is "$(m volume info rep | grep -v Status)" "$before" "and is the same in all that is told"
is "$(m import)" "No volumes to take over" "once"
is "$(m volume start rep)" "volume start: rep: success" "it starts"
is "$(m volume heal rep enable)" "Enable heal on volume rep has been successful " "healing is switched on"
ok "bricks and heal daemon run" wait_for 30 online 3
ours
start_mount --volfile-server=$GL_ADDR --volfile-id=rep "$T/b"
ok "the data is there" diff -r --no-dereference "$T/b/doc" "$GL/bricks/rep/b1/doc"
is "$(cat "$T/b/missed")" missed "also what one brick missed"
ok "which is healed" wait_for 60 healed
ok "on the brick as well" wait_for 30 diff -r --no-dereference "$GL/bricks/rep/b1/doc" "$GL/bricks/rep/b2/doc"
ok "new data" sh -c "echo ours > $T/b/ours"
is "$(m volume set rep network.ping-timeout 17)" "volume set: success" "an option is set"
umount "$T/b"
is "$(m volume stop rep)" "volume stop: rep: success" "stopped"
end_daemon "$T/mrun/mortard.pid"

# ---- the way back
in_ns main glusterd -f "$GL/glusterd.vol" -p "$GL/run/glusterd.pid" -l "$T/log/glusterd.log" </dev/null >/dev/null 2>&1
ok "the real daemon starts in the same folder" wait_for 30 gl_answers
like "$(gl volume info rep)" "network.ping-timeout: 17" "it knows the volume, and the option set meanwhile"
ok "it starts the volume" gl volume start rep
real
gl_mount rep "$T/c"
is "$(cat "$T/c/ours" "$T/c/missed")" "ours
missed" "and its client reads all of it"
umount "$T/c"
done_testing
