#!/bin/bash
# Field case C8: bricks without CAP_SYS_ADMIN (in a container) may not write trusted.* attributes; they keep their own
# under user.*, say so once, and everything works, symbolic links and special files included. Later a privileged process
# serves the same bricks. (The mount itself needs the capability, by the kernel's rules.)
NEEDS_PROGRAMS="capsh"
. "$(dirname "$0")/lib.sh"

printf '#!/bin/bash\nexec "$@"\n' > "$T/run/exec"
without="capsh --drop=cap_sys_admin -- $T/run/exec"

use() { # use MNT PREFIX
    local m=$1 p=$2
    ok "$p: a file" sh -c "echo content > $m/file && echo more >> $m/file && grep -q content $m/file"
    ok "$p: a directory with files" cp -a /usr/share/doc/bash "$m/doc"
    ok "$p: a symbolic link" ln -s file "$m/soft"
    ok "$p: a fifo" mkfifo "$m/fifo"
    ok "$p: a device" mknod "$m/null" c 1 3
    ok "$p: a hard link" ln "$m/file" "$m/hard"
    ok "$p: an attribute" setfattr -n user.mine -v value "$m/file"
    ok "$p: a rename" mv "$m/doc" "$m/docs"
    ok "$p: a rename of a symbolic link" mv "$m/soft" "$m/softer"
    is "$(readlink "$m/softer")" file "$p: its text"
    is "$(getfattr -d -m - "$m/file" 2>/dev/null | grep '=')" 'user.mine="value"' "$p: only the user's attributes are seen"
    ok "$p: owner and mode of special files" sh -c "chown -h 12:34 $m/softer $m/fifo $m/null && chmod 600 $m/fifo"
}

check() { # check MNT PREFIX: what use() made
    local m=$1 p=$2
    is "$(cat "$m/hard")" "content
more" "$p: content"
    ok "$p: the tree" diff -r --no-dereference /usr/share/doc/bash "$m/docs"
    is "$(stat -c '%F %u:%g' "$m/softer" "$m/fifo" "$m/null")" "symbolic link 12:34
fifo 12:34
character special file 12:34" "$p: special files"
    is "$(getfattr --only-values -n user.mine "$m/file" 2>/dev/null)" value "$p: attribute"
}

for count in 1 2; do
    v=v$count p="$count brick(s)"
    volume $v $count
    for f in "$T/$v"/brick*.vol; do
        start_brick --under "$without" "$f"
        is $? 0 "$p: ${f##*/} starts without the capability"
    done
    start_mount $v "$T/m$count"
    use "$T/m$count" "$p"
    is "$(getfattr -d -m '^trusted' -R --absolute-names "$T/$v/b1" 2>/dev/null)" "" "$p: no trusted attributes on the brick"
    is "$(grep -ci 'user\.\*\|user\. ' "$T/log/$v-brick1.log")" 1 "$p: the log says so once"
    if [ $count = 2 ]; then
        kill_brick $v/brick1
        ok "$p: writing goes on without a brick" sh -c "echo later > $T/m2/later && ln -s later $T/m2/late-link"
        start_brick --under "$without" "$T/$v/brick1.vol"
        wait_connected $v/brick1 "$T/m2"
        is "$(cat "$T/m2/later") $(readlink "$T/m2/late-link")" "later later" "$p: the brick that was away is not read while it is stale"
    fi
    stop_mount "$T/m$count"
    stop_bricks
    start_bricks $v
    start_mount $v "$T/m$count"
    check "$T/m$count" "$p, later with the capability"
    ok "$p, later with the capability: new files" sh -c "echo new > $T/m$count/new && ln -s new $T/m$count/newlink"
    stop_mount "$T/m$count"
    stop_bricks
done
done_testing
