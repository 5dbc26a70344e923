# Volume files. Sourced by lib.sh, which sets T.
#
#   volume NAME REPLICAS [--server-side] [--posix "KEY VALUE;KEY VALUE"] [--client "KEY VALUE;..."] [--server "KEY VALUE;..."]
#               [--hosts "A1 A2 ..."] [--witness]
#
# writes $T/NAME/brick1.vol ..., $T/NAME/client.vol and $T/NAME/shd.vol (of a heal daemon) and makes the directories
# $T/NAME/b1 ... of the bricks. Ports are chosen per volume, all on 127.0.0.1 of one host, unless --hosts gives an address
# per brick.
#
# --posix adds options to storage/posix, --client to every protocol/client of the client, --server to every
# protocol/server, --replicate to cluster/replicate of client and heal daemon. --server-side makes each brick process
# replicate over its own disk and the other's (two bricks), so that the client has only one connection, to the first;
# client2.vol has the second.
#
# --witness gives two bricks a thin arbiter: $T/NAME/witness.vol serves $T/NAME/ta, at the address of the last --hosts.
#
# CLIENT_LAYERS are the translators above replication, from the bottom; BRICK_LAYERS those between storage/posix and
# protocol/server.

CLIENT_LAYERS=${CLIENT_LAYERS-"features/utime performance/write-behind"}
BRICK_LAYERS=${BRICK_LAYERS-"features/access-control features/locks performance/io-threads features/index"}
volume_count=0

options() { # options "KEY VALUE;KEY VALUE": as lines of a section
    local item
    local IFS=';'
    for item in $1; do [ -z "${item// /}" ] || echo "    option ${item# }"; done
}

section() { # section NAME TYPE "KEY VALUE;..." SUBVOLUME...
    echo "volume $1"
    echo "    type $2"
    options "$3"
    [ $# -lt 4 ] || echo "    subvolumes ${*:4}"
    echo "end-volume"
    echo
}

layers() { # layers PREFIX FIRST_CHILD LAST_NAME "TYPES": a stack; the last section gets the name LAST_NAME
    local prefix=$1 child=$2 last=$3 types=($4) i name options
    for ((i = 0; i < ${#types[@]}; i++)); do
        name=$prefix-${types[i]#*/}
        [ $i -lt $((${#types[@]} - 1)) ] || name=$last
        options=
        case ${types[i]} in
            features/index) options="index-base $brick_directory/.glusterfs/indices;xattrop-pending-watchlist trusted.afr.$volume_name-;xattrop-dirty-watchlist trusted.afr.dirty";;
            features/utime) options="noatime on";;
        esac
        section "$name" "${types[i]}" "$options" "$child"
        child=$name
    done
}

client_section() { # client_section NAME HOST PORT SUBVOLUME "OPTIONS"
    section "$1" protocol/client "transport-type tcp;remote-host $2;remote-port $3;remote-subvolume $4;$5"
}

volume() {
    local volume_name=$1 count=$2 brick_directory server_side=0 witness=0 posix= client= server= replicate= hosts=()
    local base i names= pending=
    shift 2
    while [ $# -gt 0 ]; do
        case $1 in
            --server-side) server_side=1; shift;;
            --witness) witness=1; shift;;
            --posix) posix=$2; shift 2;;
            --client) client=$2; shift 2;;
            --replicate) replicate=$2; shift 2;;
            --server) server=$2; shift 2;;
            --hosts) read -ra hosts <<< "$2"; shift 2;;
            *) fail "volume: no option $1"; exit 1;;
        esac
    done
    base=$((49152 + volume_count * 16)); volume_count=$((volume_count + 1))
    mkdir -p "$T/$volume_name"
    for ((i = 1; i <= count; i++)); do
        brick_directory=$T/$volume_name/b$i
        mkdir -p "$brick_directory"
        if [ $server_side = 1 ]; then
            mirror_server_file "$i" > "$T/$volume_name/brick$i.vol"
            { client_section "$volume_name-server" "${hosts[i - 1]:-127.0.0.1}" $((base + i - 1)) mirror "$client"
              layers "$volume_name" "$volume_name-server" "$volume_name" "performance/write-behind"
            } > "$T/$volume_name/client$([ "$i" = 1 ] || echo "$i").vol"
        else
            brick_file "$i" > "$T/$volume_name/brick$i.vol"
        fi
    done
    [ $witness = 0 ] || { mkdir -p "$T/$volume_name/ta"; witness_file > "$T/$volume_name/witness.vol"; }
    [ $server_side = 1 ] || client_file > "$T/$volume_name/client.vol"
    [ $server_side = 1 ] || [ "$count" = 1 ] || shd_file > "$T/$volume_name/shd.vol"
}

# The three below see the variables of volume().
brick_file() {
    section "$volume_name-posix" storage/posix "directory $brick_directory;$posix"
    layers "$volume_name" "$volume_name-posix" brick "$BRICK_LAYERS"
    section "$volume_name-server" protocol/server \
        "transport-type tcp;transport.socket.listen-port $((base + $1 - 1));auth.addr.brick.allow *;$server" brick
}

# As /etc/glusterfs/thin-arbiter.vol.
witness_file() {
    local ta=$T/$volume_name/ta
    section ta-posix storage/posix "directory $ta"
    section ta-thin-arbiter features/thin-arbiter "" ta-posix
    section ta-locks features/locks "notify-contention yes" ta-thin-arbiter
    section ta-upcall features/upcall "cache-invalidation off" ta-locks
    section ta-io-threads performance/io-threads "" ta-upcall
    section ta-index features/index "xattrop-pending-watchlist trusted.afr.ta-;xattrop-dirty-watchlist trusted.afr.dirty;index-base $ta/.glusterfs/indices" ta-io-threads
    section "$ta" debug/io-stats "count-fop-hits off;latency-measurement off;unique-id $ta" ta-index
    section ta-server protocol/server \
        "transport-type tcp;transport.socket.listen-port $((base + count));auth.addr.$ta.allow *;auth-path $ta" "$ta"
}

client_sections() {
    names= pending=
    for ((i = 0; i < count; i++)); do
        client_section "$volume_name-client-$i" "${hosts[i]:-127.0.0.1}" $((base + i)) brick "$client"
        names+=" $volume_name-client-$i"
        pending+=${pending:+,}$volume_name-client-$i
    done
    [ $witness = 1 ] || return 0
    client_section "$volume_name-ta-$count" "${hosts[count]:-127.0.0.1}" $((base + count)) "$T/$volume_name/ta" "$client"
    names+=" $volume_name-ta-$count"
    pending+=,$volume_name-ta-$count
    [[ $replicate == *thin-arbiter* ]] || replicate+=";thin-arbiter ${hosts[count]:-127.0.0.1}:$T/$volume_name/ta"
}

# As glusterd writes it.
shd_file() {
    client_sections
    section "$volume_name-replicate-0" cluster/replicate "iam-self-heal-daemon yes;self-heal-daemon enable;entry-self-heal on;data-self-heal on;metadata-self-heal on;background-self-heal-count 0;afr-pending-xattr $pending;$replicate" $names
    section "$volume_name" debug/io-stats "threads 16;log-level INFO" "$volume_name-replicate-0"
}

client_file() {
    client_sections
    if [ "$count" = 1 ]; then
        layers "$volume_name" "${names# }" "$volume_name" "$CLIENT_LAYERS"
        return
    fi
    section "$volume_name-replicate-0" cluster/replicate "afr-pending-xattr $pending;$replicate" $names
    layers "$volume_name" "$volume_name-replicate-0" "$volume_name" "$CLIENT_LAYERS"
}

mirror_server_file() { # both servers list the disks in the same order, with the same pending names
    local me=$1 other=$((3 - $1)) children
    section "$volume_name-posix" storage/posix "directory $brick_directory;$posix"
    layers "$volume_name" "$volume_name-posix" disk "features/locks features/index"
    client_section "$volume_name-other" "${hosts[other - 1]:-127.0.0.1}" $((base + other - 1)) disk ""
    children="disk $volume_name-other"
    [ "$me" = 1 ] || children="$volume_name-other disk"
    section mirror cluster/replicate "afr-pending-xattr $volume_name-client-0,$volume_name-client-1" $children
    section "$volume_name-server" protocol/server \
        "transport-type tcp;transport.socket.listen-port $((base + me - 1));auth.addr.disk.allow *;auth.addr.mirror.allow *;$server" \
        disk mirror
}
