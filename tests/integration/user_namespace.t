#!/bin/bash
# Bricks without CAP_SYS_ADMIN: everything works, with user.* attributes, symlinks and special files included; the same
# bricks served by a privileged process afterwards.
# timeout: 200
NEEDS_PROGRAMS="setpriv"
. "$(dirname "$0")/lib.sh"

without_right="setpriv --bounding-set -sys_admin"

for count in 1 2; do
    v=v$count
    volume $v $count
    for i in $(seq $count); do
        start_brick --under "$without_right" "$v/brick$i" || { fail "$count: brick $i starts without the right"; exit 1; }
    done
    start_mount $v "$T/m"
    m=$T/m
    ok "$count: files, links, special files" sh -ec "cd $m; mkdir -p d/e; echo hello > d/a; ln d/a d/b; ln -s target d/l; mkfifo d/p; \
        mknod d/n c 1 3; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"d/s\")'; ln d/l d/l2; mv d/p d/e/p"
    ok "$count: a tree" cp -a /usr/share/doc/bash "$m/doc"
    ok "$count: user attributes" setfattr -n user.x -v y "$m/d/a"
    inodes=$(cd "$m" && find . -mindepth 1 -printf '%P %i %y %n %l\n' | sort)
    stop_mount "$m"
    start_mount $v "$m"
    is "$(cd "$m" && find . -mindepth 1 -printf '%P %i %y %n %l\n' | sort)" "$inodes" "$count: all is there with the same inode numbers"
    is "$(getfattr --only-values -n user.x "$m/d/a" 2>/dev/null)" y "$count: user attribute"
    is "$(getfattr -h -d -m '^trusted' "$T/$v/b1/d/a" 2>/dev/null)" "" "$count: no trusted.* on the brick"
    ok "$count: gfid as user.gfid" getfattr -n user.gfid "$T/$v/b1/d/a"
    is "$(grep -c user-namespace "$T/log/$v-brick1.log")" 1 "$count: said once in the log"
    if [ $count = 2 ]; then
        kill_brick $v/brick2
        ok "changes while a brick is away" sh -ec "cd $m; echo new > d/a; ln -sf other d/l; rm d/s; ln -s fresh d/f; chown -h 5:6 d/l2"
        ok "pending is kept for a symlink too" test -n "$(pending "$T/$v/b1")"
        stop_mount "$m"
        restart_brick $v/brick2
        start_mount $v "$m"
        is "$(cat "$m/d/a") $(readlink "$m/d/l") $(readlink "$m/d/f")" "new other fresh" "the good copies are read"
        ok "the removed name stays away" test ! -e "$m/d/s"
    fi
    inodes=$(cd "$m" && find . -mindepth 1 -printf '%P %i %y %n %l\n' | sort)
    stop_mount "$m"
    for i in $(seq $count); do stop_brick $v/brick$i; done
    start_bricks $v
    start_mount $v "$m"
    is "$(cd "$m" && find . -mindepth 1 -printf '%P %i %y %n %l\n' | sort)" "$inodes" "$count: all is there then"
    ok "$count: and can be changed" sh -ec "cd $m; ln -s x d/new; rm d/l; mv d/e/p d/p; echo more >> d/a"
    is "$(getfattr -h -d -m '^trusted' "$T/$v/b1/d/a" 2>/dev/null)" "" "$count: still no trusted.* on the brick"
    stop_mount "$m"
    for i in $(seq $count); do stop_brick $v/brick$i; done
done
done_testing
