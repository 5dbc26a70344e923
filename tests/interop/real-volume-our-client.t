#!/bin/bash
# Our client on a volume of a real glusterd, found through --volfile-server: one brick, and a mirror of two.
# timeout: 900
. "$(dirname "$0")/gl_lib.sh"

gl_start
for count in 1 2; do
    v=real$count p="real volume of $count, our client" m=$T/m$count
    gl_volume $v $count
    ours
    gl_mount $v "$m"
    like "$(awk -v m="$m" '$2 == m { print $3 }' /proc/mounts)" '^fuse\.' "$p: it is mounted"
    exercise "$m" "$p"
    exercise_is_there "$m" "$p"
    mkdir "$m/posix"
    nested "$p" posix_suite "$m/posix" $(gl_clients_rejected)
    rmdir "$m/posix"
    stop_mount "$m"
    real
    gl_mount $v "$T/r$count"
    exercise_is_there "$T/r$count" "$p, then the real client"
    exercise_again "$T/r$count" "$p, then the real client" 1
    ours
    gl_mount "/$v" "$m" # scripts use both forms of the name
    exercise_is_there "$m" "$p, then ours again"
    stop_mount "$m"
    stop_mount "$T/r$count"
    [ $count = 1 ] || ok "$p: both bricks hold the same" wait_for 20 compare_bricks "$GL/bricks/$v/b1" "$GL/bricks/$v/b2"
done
done_testing
