#!/bin/bash
# The real GlusterFS client on our bricks, with a volume file: one brick, and a mirror of two.
# timeout: 900
. "$(dirname "$0")/gl_lib.sh"

for count in 1 2; do
    v=v$count p="$count of our bricks, real client"
    volume $v $count
    ours
    start_bricks $v
    real
    start_mount $v "$T/m$count" --acl
    exercise "$T/m$count" "$p"
    exercise_is_there "$T/m$count" "$p"
    mkdir "$T/m$count/posix"
    nested "$p" posix_suite "$T/m$count/posix" $(gl_clients_rejected)
    ok "$p: a file under random operations" fsx_like "$T/m$count/posix" --ops 3000 --seed 7 \
        --without zero,zero_keeping_size,seek,stat,truncate,copy,allocate,allocate_keeping_size,punch
    # Nothing about appends from two mounts: the real client tears them on its own bricks as well.
    rm -r "$T/m$count/posix"
    stop_mount "$T/m$count"
    # Our bricks fill in from their own inodes what this client does not stamp.
    [ $count = 1 ] || bricks_agree $v "$p: both bricks hold the same" --ignore-times
    ours
    start_mount $v "$T/o$count"
    exercise_is_there "$T/o$count" "$p, then our client"
    stop_mount "$T/o$count"
    stop_bricks
done
done_testing
