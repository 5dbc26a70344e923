#!/bin/bash
# Bricks written by GlusterFS are served by us and bricks written by us by GlusterFS: same names, bytes, attributes, inode
# numbers, pending heals.
# timeout: 300
NEEDS_PROGRAMS="glusterfs glusterfsd"
. "$(dirname "$0")/../integration/lib.sh"

use() { # use ours|theirs
    if [ "$1" = ours ]; then BRICK=mortarfs MOUNT=mortarfs; else BRICK=glusterfsd MOUNT=glusterfs; fi
}

make_tree() {
    cd "$1" || return 1
    mkdir -p d/e
    echo hello > d/a
    ln d/a d/b
    ln -s target d/link
    mkfifo d/fifo
    mknod d/null c 1 3
    cp -a /usr/share/doc/bash d/doc
    setfattr -n user.color -v red d/a
    chmod 4755 d/a
    touch -d @1000000000 d/a
    mv d/doc d/e/moved
    mkdir d/full && touch d/full/x && rm d/full/x && rmdir d/full
    truncate -s 100000 d/sparse
}

view() { # what a user sees, without block counts of the root
    (cd "$1" && find . -mindepth 1 -printf '%P %y %i %n %m %U %G %s %T@ %l\n' | sort
     find d -type f -print0 | sort -z | xargs -0 md5sum
     getfattr -h -R -d -m '^user\.' d 2>/dev/null)
}

change_tree() {
    cd "$1" || return 1
    mv d/e/moved d/back && ln d/a d/third && echo more >> d/a && rm d/fifo && mkdir d/new && mv d/new d/e/new && rm d/b &&
        cp -a /usr/share/doc/bash d/e/again && rm -r d/back
}

for pair in "ours theirs" "theirs ours"; do
    read -r writer reader <<< "$pair"
    v=single-$writer
    use "$writer"
    BRICK=glusterfsd volume "$v" 1 # also makes what GlusterFS leaves to glusterd
    start_bricks "$v"
    start_mount "$v" "$T/m"
    ok "$writer: a tree is made" make_tree "$T/m"
    stop_mount "$T/m"; stop_brick "$v/brick1"
    start_bricks "$v"; start_mount "$v" "$T/m"
    view "$T/m" > "$T/first"
    stop_mount "$T/m"; stop_brick "$v/brick1"
    for name in "$reader" "$writer" "$reader"; do
        use "$name"
        start_bricks "$v"
        start_mount "$v" "$T/m"
        view "$T/m" > "$T/now"
        ok "written by $writer, served by $name: all looks the same" diff "$T/first" "$T/now"
        if [ "$name" = "$reader" ] && [ ! -e "$T/$v/changed" ]; then
            ok "written by $writer, changed by $name" change_tree "$T/m"
            touch "$T/$v/changed"
            stop_mount "$T/m"; stop_brick "$v/brick1"
            start_bricks "$v"; start_mount "$v" "$T/m"
            view "$T/m" > "$T/first"
        fi
        stop_mount "$T/m"
        ok "served by $name: ends on SIGTERM" stop_brick "$v/brick1"
    done
    ok "$pair: every name has its handle" compare_bricks "$T/$v/b1" "$T/$v/b1"
done

# A replica that was away: what one leaves pending, the other knows.
for pair in "ours theirs" "theirs ours"; do
    read -r writer reader <<< "$pair"
    v=pair-$writer
    use "$writer"
    BRICK=glusterfsd volume "$v" 2
    start_bricks "$v"
    start_mount "$v" "$T/m"
    echo old > "$T/m/file"
    wait_for 15 is_clean "$T/$v/b1" "$T/$v/b2"
    kill_brick "$v/brick2"
    ok "$writer: a file is changed while a brick is away" sh -c "echo new > $T/m/file && touch $T/m/more"
    stop_mount "$T/m"; stop_brick "$v/brick1"
    read -r data _ <<< "$(afr_of "$T/$v/b1/file" "$v-client-1")"
    ok "$writer: the change is marked as missing there" test "${data:-0}" -gt 0
    ok "$writer: and listed" grep -q "$(gfid_of "$T/$v/b1/file" | head -c 8)" <<< "$(pending "$T/$v/b1")"
    use "$reader"
    start_bricks "$v"
    start_mount "$v" "$T/m"
    is "$(cat "$T/m/file")" new "left by $writer: $reader reads the good copy"
    ok "left by $writer: $reader sees the new name" test -e "$T/m/more"
    stop_mount "$T/m"
    stop_brick "$v/brick1"; stop_brick "$v/brick2"
done
done_testing
