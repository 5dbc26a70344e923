#!/bin/bash
# Two bricks and a witness, real processes: either brick goes on alone, the one that is behind does not, and what was
# recorded goes when it is healed.
# timeout: 400
. "$(dirname "$0")/lib.sh"

volume vol 2 --witness --client "ping-timeout 5"
start_bricks vol
start_brick vol/witness
m=$T/m
pair_file=$T/vol/ta/trusted.afr.vol-ta-2
start_mount vol "$m"

blames() { afr_of "$pair_file" "vol-client-$1"; }                       # the witness's counters against brick 1 or 2
is_blamed() { [[ $(blames "$1") =~ [1-9] ]]; }
is_cleared() { [ -e "$pair_file" ] && ! is_blamed 0 && ! is_blamed 1; }
write_to() { timeout 30 bash -c 'echo "$2" > "$1"' - "$1" "$2" 2>/dev/null; }
can_write() { write_to "$m/probe" x; }
has() { [ "$(timeout 30 cat "$m/f" 2>/dev/null)" = "$1" ]; }
# A refusal takes effect with the client's knowledge that the brick is gone: asked until it is so, then it must stay.
is_refused() { ! can_write && ! timeout 30 cat "$m/f" >/dev/null 2>&1; }
enrolled() {
    local i
    for i in 1 2; do
        [ "$(getfattr --absolute-names -n trusted.afr.witness -e hex --only-values "$T/vol/b$i" 2>/dev/null | xxd -p)" = "$(gfid_of "$pair_file")" ] || return 1
    done
}

ok "the witness is written on both bricks" wait_for 30 enrolled
ok "a file is written with both bricks" write_to "$m/f" old
is "$(blames 0)$(blames 1)" "" "and the witness has heard nothing of it"

kill_brick vol/brick1
ok "with the first brick gone writing goes on" wait_for 30 write_to "$m/f" new
ok "which the witness has recorded" is_blamed 0
ok "and only that" eval '! is_blamed 1'
is "$(cat "$m/f")" new "the brick that is left is read"
kill_brick vol/brick2
restart_brick vol/brick1 || fail "the first brick comes back"
wait_connected vol/brick1 "$m"
ok "alone it is refused: it is behind" wait_for 60 is_refused
ok "a mount that never saw the other one refuses it too" eval '
    launch_mount vol "$T/late"; ! timeout 10 stat "$T/late/f" >/dev/null 2>&1'
is "$(cat "$T/vol/b1/f")" old "nothing has been written to it"
restart_brick vol/brick2 || fail "the second brick comes back"
ok "what was written alone is there" wait_for 60 has new

start_shd vol
ok "the heal daemon makes both equal" wait_for 60 is_healed vol
ok "and takes the blame back" wait_for 60 is_cleared
is "$(cat "$T/vol/b1/f")" new "the first brick is healed"
kill_brick vol/brick2
ok "now the first brick goes on alone" wait_for 60 write_to "$m/f" newer
ok "with the other one recorded" is_blamed 1
restart_brick vol/brick2 || fail "it comes back"
ok "and is healed" wait_for 60 is_healed vol
ok "the blame goes again" wait_for 60 is_cleared

kill_brick vol/witness
ok "without the witness both bricks go on" wait_for 30 can_write
kill_brick vol/brick1
ok "but not one" wait_for 60 is_refused
restart_brick vol/witness || fail "the witness comes back"
ok "and one goes on" wait_for 60 can_write

# The witness forgets everything while the first brick is behind.
kill_brick vol/witness
kill_brick vol/brick2
stop_shd vol
rm -rf "$T/vol/ta"; mkdir "$T/vol/ta"
restart_brick vol/witness || fail "an empty witness is served"
restart_brick vol/brick1 || fail "the brick that is behind comes back"
wait_connected vol/brick1 "$m"
ok "and is refused: that witness has no word for it" wait_for 60 is_refused
restart_brick vol/brick2 || fail "the other one comes back"
ok "with both bricks all is well" wait_for 60 can_write
start_shd vol
ok "healed, they take the new witness" eval 'wait_for 60 is_healed vol && wait_for 60 enrolled'
stop_mount "$m"
bricks_agree vol "the bricks are equal in the end"
done_testing
