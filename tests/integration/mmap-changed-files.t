#!/bin/bash
# Field case C17: readers that map files as a web server does, while another mount rewrites them, cuts and grows them and
# renames new ones over them: no SIGBUS inside the size the reader last saw, no page of old and new together.
# timeout: 200
. "$(dirname "$0")/lib.sh"

for count in 2 3; do
    volume v$count $count
    start_bricks v$count
    start_mount v$count "$T/r$count"
    start_mount v$count "$T/w$count"
    mkdir "$T/w$count/www"
    output=$(mmapreader "$T/r$count/www" "$T/w$count/www" 10)
    is $? 0 "$count bricks: no SIGBUS, no mixed pages" || diag "$output"
    at_least "$(echo "$output" | sed -n 's/^changes=//p')" 10 "$count bricks: the files are changed"
    at_least "$(echo "$output" | sed -n 's/^rounds=//p' | sort -n | head -n 1)" 10 "$count bricks: each reader reads them"
    at_least "$(echo "$output" | sed -n 's/^cuts=//p')" 10 "$count bricks: a file is cut and grown"
    output=$(mmapreader "$T/w$count/www" "$T/w$count/www" 3)
    is $? 0 "$count bricks: the same through one mount" || diag "$output"
    stop_mount "$T/r$count"
    stop_mount "$T/w$count"
done
done_testing
