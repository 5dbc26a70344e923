# What every client must be able to do on every brick. exercise MNT PREFIX works in the empty top of a mount;
# exercise_is_there MNT PREFIX checks what it has left, through any other mount, later;
# exercise_again MNT PREFIX N changes all of it (N: any number, another each time), and exercise_is_there still holds.

odd_name=$'odd \xff\xfe\n name'
long_name=$(printf '%0255d' 7)

exercise() {
    local m=$1 p=$2
    ok "$p: write" sh -c "echo hello > $m/file"
    ok "$p: append" sh -c "echo world >> $m/file"
    ok "$p: make directories" mkdir -p "$m/a/b/c"
    ok "$p: copy a tree" cp -a /usr/share/doc/bash "$m/doc"
    ok "$p: large file" dd if=/dev/zero of="$m/large" bs=64k count=100 conv=fsync
    ok "$p: overwrite in the middle" sh -c "echo middle | dd of=$m/large bs=1 seek=3000000 conv=notrunc"
    ok "$p: sparse file" truncate -s 5G "$m/sparse"
    ok "$p: link" ln "$m/file" "$m/hard"
    ok "$p: symbolic link" ln -s file "$m/soft"
    ok "$p: fifo" mkfifo "$m/fifo"
    ok "$p: device" mknod "$m/null" c 1 3
    ok "$p: owner and mode" sh -c "chown 12:34 $m/hard && chmod 0640 $m/hard && chown -h 56:78 $m/soft && chmod 1777 $m/a"
    ok "$p: times" touch -d "2001-02-03 04:05:06.789" "$m/file"
    ok "$p: attributes" setfattr -n user.test -v value "$m/file"
    ok "$p: names of any bytes" touch "$m/$odd_name" "$m/$long_name"
    ok "$p: rename" mv "$m/a" "$m/z"
    ok "$p: rename over a file" sh -c "echo over > $m/new && echo under > $m/old && mv $m/new $m/old"
    ok "$p: many files" sh -c "mkdir $m/many && cd $m/many && seq 300 | xargs -I@ touch f@"
    ok "$p: remove" rm -r "$m/z/b"
}

exercise_is_there() {
    local m=$1 p=$2
    is "$(cat "$m/file" "$m/hard" "$m/soft" "$m/old")" "hello
world
hello
world
hello
world
over" "$p: content"
    ok "$p: the tree" diff -r --no-dereference /usr/share/doc/bash "$m/doc"
    is "$(dd if="$m/large" bs=1 skip=2999999 count=8 2>/dev/null | od -An -c | tr -d ' \n')" '\0middle\n' "$p: middle of the large file"
    is "$(stat -c '%s' "$m/large" "$m/sparse" | tr '\n' ' ')" "6553600 5368709120 " "$p: sizes"
    is "$(stat -c '%F %u:%g %a %h' "$m/file" "$m/hard")" "regular file 12:34 640 2
regular file 12:34 640 2" "$p: owner, mode and links"
    is "$(stat -c '%F %u:%g' "$m/soft"; readlink "$m/soft"; stat -c '%F' "$m/fifo"; stat -c '%F %t:%T' "$m/null"; stat -c %a "$m/z")" "symbolic link 56:78
file
fifo
character special file 1:3
1777" "$p: special files"
    is "$(TZ=UTC stat -c %y "$m/file")" "$(TZ=UTC date -d '2001-02-03 04:05:06.789' '+%F %T.%N %z')" "$p: times"
    is "$(getfattr -d --absolute-names "$m/file" 2>/dev/null | grep =)" 'user.test="value"' "$p: attributes"
    is "$(cd "$m" && ls -A1 --quoting-style=c | grep -v '^"\(again\|changed\)')" "$(ls_expected)" "$p: listing"
    is "$(ls "$m/many" | wc -l)" 300 "$p: many files"
}
ls_expected() { printf '"%s"\n' "$long_name" doc fifo file hard large many null 'odd \377\376\n name' old soft sparse z | LC_ALL=C sort; }

exercise_again() {
    local m=$1 p=$2 n=$3
    ok "$p: new files beside old" sh -c "echo $n > $m/again.$n && ln -s again.$n $m/again.link.$n && mkdir $m/again.dir.$n"
    ok "$p: rewrite" sh -c "cat $m/file > $m/changed && cp $m/changed $m/old.tmp && echo over > $m/old.tmp && mv $m/old.tmp $m/old"
    ok "$p: rename there and back" sh -c "mv $m/doc $m/doc.moved && mv $m/doc.moved $m/doc && mv $m/soft $m/soft.moved && mv $m/soft.moved $m/soft"
    ok "$p: link and unlink" sh -c "ln $m/file $m/third && rm $m/hard && mv $m/third $m/hard"
    ok "$p: remove and make many files" sh -c "cd $m/many && rm f1?? && seq 100 199 | xargs -I@ touch f@"
    ok "$p: times again" touch -d "2001-02-03 04:05:06.789" "$m/file"
    ok "$p: rewrite the large file" sh -c "dd if=/dev/zero of=$m/large bs=64k count=100 conv=notrunc && echo middle | dd of=$m/large bs=1 seek=3000000 conv=notrunc,fsync"
}
