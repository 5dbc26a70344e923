# Field case C13, for tests that source this after lib.sh: a large image of which little changes while a brick is away.
#
#   image_setup VOLUME MB      three bricks, heal daemon, mount $T/m-VOLUME with the file "image"
#   image_away VOLUME          brick 3 goes, ten blocks change, brick 3 comes back
#   image_traffic VOLUME MAX_KB   after image_away: healed by so little network traffic
#   image_busy VOLUME          the same while a program writes and syncs: sets $quiet and $busy to what fsyncer printed

image_setup() {
    volume "$1" 3
    start_bricks "$1"
    start_shd "$1"
    start_mount "$1" "$T/m-$1"
    dd if=/dev/urandom of="$T/m-$1/image" bs=1M count="$2" status=none
    sync -f "$T/m-$1"
    image_mb=$2
}

# Ten blocks of 4 KiB all over the file but for its first MiB.
change_blocks() {
    local i
    for i in $(seq 10); do
        dd if=/dev/urandom of="$T/m-$1/image" bs=4k count=1 seek=$((256 + i * (image_mb - 1) * 256 / 11)) conv=notrunc status=none
    done
    sync -f "$T/m-$1"
}

image_leave() { kill_brick "$1/brick3"; change_blocks "$1"; wait_for 60 has_pending "$1"; }
has_pending() { [ -n "$(pending "$(brick_dir "$1/brick1")")" ]; }
received_kb() { in_ns main awk '/lo:/ { sub(/.*:/, ""); print int($1 / 1024) }' /proc/net/dev; }
image_healed() { wait_for 200 is_healed "$1"; }
# A writer's own marks come and go all the time; what tells that a brick is behind must go for good.
is_not_blamed() { ! has_pending "$1" && [ -z "$(pending "$(brick_dir "$1/brick2")")" ]; }
image_equal() { cmp "$(brick_dir "$1/brick1")/image" "$(brick_dir "$1/brick3")/image"; }

image_traffic() { # image_traffic VOLUME MAX_KB
    local before kb
    image_leave "$1"
    before=$(received_kb)
    restart_brick "$1/brick3"
    ok "the image is healed" image_healed "$1"
    kb=$(($(received_kb) - before))
    ok "the copies are equal" image_equal "$1"
    at_most "$kb" "$2" "healing ten blocks of $image_mb MiB moves little ($kb KiB)"
}

image_busy() {
    rm -f "$T/run/stop"
    touch "$T/run/now"
    quiet=$(fsyncer "$T/m-$1/image" 1048576 3 "$T/run/now")
    image_leave "$1"
    restart_brick "$1/brick3"
    fsyncer "$T/m-$1/image" 1048576 1 "$T/run/stop" > "$T/run/busy" &
    local pid=$!
    ok "the image is healed under a writer" wait_for 200 is_not_blamed "$1"
    touch "$T/run/stop"
    wait "$pid"
    is $? 0 "the writer met no error"
    busy=$(cat "$T/run/busy")
    diag "alone:      $quiet"
    diag "while heal: $busy"
    ok "nothing is pending when all is quiet" image_healed "$1"
    ok "and the copies are equal" image_equal "$1"
}

field() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" <<< "$2"; }
