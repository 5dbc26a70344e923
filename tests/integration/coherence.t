#!/bin/bash
# Two mounts of one volume see each other's changes at once: one brick, a mirror, a mirror with one brick left.
# timeout: 900
. "$(dirname "$0")/lib.sh"

volume one 1
start_bricks one
start_mount one "$T/a1" --acl
start_mount one "$T/b1" --acl
nested "one brick" coherence "$T/a1" "$T/b1" $(must_have)
stop_mount "$T/a1"
stop_mount "$T/b1"

volume two 2
start_bricks two
start_mount two "$T/a2" --acl
start_mount two "$T/b2" --acl
nested "mirror" coherence "$T/a2" "$T/b2" $(must_have)
bricks_agree two "mirror: both bricks hold the same"
kill_brick two/brick2
nested "mirror with one brick" coherence "$T/a2" "$T/b2" $(must_have)
done_testing
