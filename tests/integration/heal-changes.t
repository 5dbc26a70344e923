#!/bin/bash
# Every kind of change made while a brick is away is healed by the daemon when the brick comes back: all bricks are equal
# then, nothing is pending, and users never saw an error. In a mirror of three and of two, and with names recorded one by
# one (granular) or not.
# timeout: 600
NEEDS_PROGRAMS="mortar-heal fallocate setfacl"
. "$(dirname "$0")/lib.sh"

before() { # before DIR: what the changes begin with
    local m=$1 i
    mkdir -p "$m"/{moved/deep,over,gone/deep,into,open,link}
    for i in $(seq 1 12); do seq "$i" $((i + 400)) > "$m/f$i"; done
    for i in a b c; do echo "$i" > "$m/over/$i"; done
    echo deep > "$m/moved/deep/file"; echo gone > "$m/gone/deep/file"
    echo dir-to-be > "$m/becomes-dir"; mkdir "$m/becomes-file"; echo x > "$m/becomes-file/x"
    setfattr -n user.stays -v 1 "$m/f1"; setfattr -n user.goes -v 2 "$m/f1"; setfattr -n user.changes -v 3 "$m/f1"
    ln "$m/f12" "$m/link/one"
    ln -s f1 "$m/soft"
    dd if=/dev/urandom of="$m/large" bs=1M count=8 status=none
    mkdir "$m/many"; (cd "$m/many" && seq 500 | xargs touch)
}

# One line of shell per kind of change; $m is the directory.
changes() {
    local m=$1
    ok "$p: create"            sh -c "echo new > $m/new && mkdir $m/newdir && echo in > $m/newdir/in"
    ok "$p: write"             sh -c "seq 5 > $m/f2"
    ok "$p: write inside"      sh -c "echo inside | dd of=$m/large bs=1 seek=5000000 conv=notrunc status=none"
    ok "$p: append"            sh -c "seq 900 >> $m/f3"
    ok "$p: truncate down"     truncate -s 100 "$m/f4"
    ok "$p: truncate up"       truncate -s 100000 "$m/f5"
    ok "$p: fallocate"         fallocate -o 0 -l 300000 "$m/f6"
    ok "$p: fallocate, same size" fallocate -n -o 0 -l 300000 "$m/f7"
    ok "$p: punch"             fallocate -p -o 1M -l 2M "$m/large"
    ok "$p: chmod"             chmod 0600 "$m/f8"
    ok "$p: chown"             chown 12:34 "$m/f8"
    ok "$p: chmod of a directory" chmod 1777 "$m/into"
    ok "$p: utimes"            touch -d "2001-02-03 04:05:06.789" "$m/f9"
    ok "$p: xattr set"         setfattr -n user.new -v x "$m/f1"
    ok "$p: xattr changed"     setfattr -n user.changes -v y "$m/f1"
    ok "$p: xattr removed"     setfattr -x user.goes "$m/f1"
    ok "$p: xattr of a directory" setfattr -n user.dir -v x "$m/over"
    [ "$has_acl" = no ] || ok "$p: ACL" setfacl -m u:77:rwx "$m/f1"
    ok "$p: mkdir"             mkdir -p "$m/into/a/b/c"
    ok "$p: rmdir"             rm -r "$m/gone"
    ok "$p: rename"            mv "$m/f10" "$m/f10.renamed"
    ok "$p: rename across"     mv "$m/f11" "$m/into/f11"
    ok "$p: rename of a directory across" mv "$m/moved" "$m/into/moved"
    ok "$p: write after rename" sh -c "echo more >> $m/into/moved/deep/file"
    ok "$p: rename over"       mv "$m/over/a" "$m/over/b"
    ok "$p: file becomes a directory" sh -c "rm $m/becomes-dir && mkdir $m/becomes-dir && echo y > $m/becomes-dir/y"
    ok "$p: directory becomes a file" sh -c "rm -r $m/becomes-file && echo z > $m/becomes-file"
    ok "$p: link"              ln "$m/f1" "$m/link/two"
    ok "$p: unlink of one of two names" rm "$m/link/one"
    ok "$p: symlink"           ln -s nowhere "$m/dangling"
    ok "$p: symlink replaced"  ln -sfn f2 "$m/soft"
    ok "$p: fifo"              mkfifo "$m/fifo"
    ok "$p: device"            mknod "$m/null" c 1 3
    ok "$p: unlink of an open file" sh -c "exec 3<>$m/over/c && rm $m/over/c && echo w >&3"
    ok "$p: new with holes"    truncate -s 4G "$m/sparse"
    ok "$p: a byte in the holes" sh -c "echo byte | dd of=$m/sparse bs=1 seek=3000000000 conv=notrunc status=none"
    ok "$p: names of many"     sh -c "cd $m/many && rm 1?? && touch new.1 new.2 new.3 && mv 200 200.renamed"
}

# The ctime of an inode whose name changed while the brick was away is not healed: no record says that it is behind.
same_everywhere() { # same_everywhere NAME: cases
    ok "$p: all is healed$1" wait_for 90 is_healed "$v"
    ok "$p: the bricks are equal$1" compare_bricks --ignore-ctime "${dirs[@]}"
    is "$(heal "$v" info | awk '/^Number/ { n += $4 } END { print n + 0 }')" 0 "$p: heal info lists nothing$1"
}

one_round() { # one_round VOLUME BRICKS VICTIM OPTIONS
    local count=$2 victim=$3 i m
    v=$1
    volume "$v" "$count" --replicate "$4"
    dirs=(); for ((i = 1; i <= count; i++)); do dirs+=("$T/$v/b$i"); done
    start_bricks "$v"
    start_shd "$v"
    m=$T/m-$v
    start_mount "$v" "$m"
    before "$m/d"
    has_acl=no
    ok "$p: brick $victim is killed" kill_brick "$v/brick$victim"
    changes "$m/d"
    sync -f "$m"
    ok "$p: brick $victim returns" restart_brick "$v/brick$victim"
    same_everywhere ""
    ok "$p: a reader finds what was written" sh -c "[ \"\$(cat $m/d/becomes-dir/y $m/d/becomes-file $m/d/into/moved/deep/file)\" = 'y
z
deep
more' ]"
    # the brick that was away now goes on alone with one of those that were there
    ok "$p: another brick is killed" kill_brick "$v/brick$((victim % count + 1))"
    ok "$p: the healed brick serves" sh -c "echo again > $m/d/again && cat $m/d/f3 $m/d/large $m/d/again > /dev/null && ls -lR $m/d > /dev/null"
    ok "$p: and the other returns" restart_brick "$v/brick$((victim % count + 1))"
    same_everywhere " again"
    stop_mount "$m"
    ok "$p: the daemon ends" stop_shd "$v"
    for ((i = 1; i <= count; i++)); do stop_brick "$v/brick$i"; done
}

p="three, granular" one_round three 3 2 "granular-entry-heal on"
p="three, whole directories" one_round plain 3 1 ""
p="pair" one_round pair 2 2 "granular-entry-heal on"
done_testing
