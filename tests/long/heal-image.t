#!/bin/bash
# Field case C13: replica 3, an image of 768 MiB, ten blocks changed while a brick was away. A loop of 4 KiB writes with
# fsync on it goes on at half its rate at least while the image is healed, with a p99 of 20 ms at most.
# timeout: 900
NEEDS_PROGRAMS="mortar-heal fsyncer"
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/../integration/heal-image.sh"

image_setup im 768
image_traffic im 6000
image_busy im
at_least "$(field rate "$busy")" $(($(field rate "$quiet") / 2)) "half the rate of the undisturbed writer"
at_most "$(field p99 "$busy")" 20 "p99 of a write and its sync (ms)"
stop_mount "$T/m-im"
done_testing
