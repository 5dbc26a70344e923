#!/bin/bash
# Field case C5: what is appended through one mount is read at once through another, even when the file's mtime lies in
# the future.
. "$(dirname "$0")/lib.sh"

for count in 2 1; do
    volume v$count $count
    start_bricks v$count
    start_mount v$count "$T/a$count"
    start_mount v$count "$T/b$count"
    a=$T/a$count/file b=$T/b$count/file
    printf 1234 > "$a"
    touch -m -d "+30 days" "$a"
    is "$(cat "$b")" 1234 "$count brick(s): read through the other mount"
    printf 5678 >> "$a"
    is "$(cat "$b")" 12345678 "$count brick(s): the append is read at once"
    is "$(stat -c %s "$b")" 8 "$count brick(s): and so is the size"
    for i in $(seq 20); do
        printf %04d "$i" >> "$b"
        [ "$(tail -c 4 "$a")" = "$(printf %04d "$i")" ] || { fail "$count brick(s): append $i is read at once"; break; }
    done
    is "$(stat -c %s "$a")" 88 "$count brick(s): twenty appends through the other, each read at once"
    stop_mount "$T/a$count"
    stop_mount "$T/b$count"
done
done_testing
