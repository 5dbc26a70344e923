#!/bin/bash
# mount.mortar: what it makes of sources and options, its messages and exit codes, and a mount through it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
top=$(cd "$here/../.." && pwd)
helper=$top/scripts/mount.mortar
T=$(mktemp -d "${TMPDIR:-/tmp}/mount-helper.XXXXXX")
trap 'umount -l "$T/mnt" 2>/dev/null; rm -rf "$T"' EXIT
mkdir "$T/mnt"
export MORTARFS=mortarfs UPDATEDB_CONF=$T/updatedb.conf

# The command line it would run, in one line.
line() { MOUNT_MORTAR_DRY=1 "$helper" "$@" 2>/dev/null | tr '\n' ' ' | sed "s#$T#T#g; s/ \$//"; }
# Its exit code and what it says.
says() { MOUNT_MORTAR_DRY=1 "$helper" "$@" 2>&1 | sed "s#$T#T#g"; echo "rc ${PIPESTATUS[0]}"; }

is "$(line h1:/v "$T/mnt")" "mortarfs --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "HOST:/VOLUME"
is "$(line h1:v "$T/mnt")" "mortarfs --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "HOST:VOLUME"
is "$(line h1,h2:/v "$T/mnt")" "mortarfs --process-name fuse --volfile-server=h1 --volfile-server=h2 --volfile-id=/v T/mnt" "several hosts"
is "$(line h1:/v/a/b "$T/mnt")" "mortarfs --process-name fuse --volfile-server=h1 --volfile-id=/v --subdir-mount=/a/b T/mnt" "a directory of a volume"
is "$(line h1:/snaps/s1/v "$T/mnt")" "mortarfs --read-only --process-name fuse --volfile-server=h1 --volfile-id=/snaps/s1/v T/mnt" "a snapshot is read-only"
is "$(line '[fe80::1]:/v' "$T/mnt")" "mortarfs --process-name fuse --volfile-server=fe80::1 --volfile-id=/v T/mnt" "an IPv6 address"
touch "$T/c.vol"
is "$(line "$T/c.vol" "$T/mnt")" "mortarfs --process-name fuse --volfile=T/c.vol T/mnt" "a volume file"
is "$(line h1:/v "$T/mnt" -o backup-volfile-servers=h2:h3)" "mortarfs --process-name fuse --volfile-server=h1 --volfile-server=h2 --volfile-server=h3 --volfile-id=/v T/mnt" "backup servers come after the first"
is "$(line h1:/v "$T/mnt" -o 'backup-volfile-servers=[fe80::2]:h3')" "mortarfs --process-name fuse --volfile-server=h1 --volfile-server=fe80::2 --volfile-server=h3 --volfile-id=/v T/mnt" "IPv6 backup servers"
is "$(line h1:/v "$T/mnt" -o transport=tcp,server-port=24008)" "mortarfs --process-name fuse --volfile-server=h1 --volfile-server-port=24008 --volfile-server-transport=tcp --volfile-id=/v.tcp T/mnt" "transport and port"
is "$(line h1:/v "$T/mnt" -o rw,auto,_netdev,x-systemd.automount,x-foo=1)" "$(line h1:/v "$T/mnt")" "words for others are ignored"
is "$(line h1:/v "$T/mnt" -o ro,acl,selinux,worm)" "mortarfs --read-only --acl --selinux --worm --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "flags"
is "$(line h1:/v "$T/mnt" -o noatime,nodev,nosuid)" "mortarfs --fuse-mountopts=noatime,nodev,nosuid --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "words for the kernel"
is "$(line h1:/v "$T/mnt" -o 'context="system_u:object_r:x_t:s0:c1,c2",noexec')" 'mortarfs --fuse-mountopts=context="system_u:object_r:x_t:s0:c1,c2",noexec --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt' "a comma in quotes does not separate"
for option in attribute-timeout=2 entry-timeout=0.5 negative-timeout=3 gid-timeout=1 lru-limit=10 direct-io-mode=enable \
    background-qlen=100 congestion-threshold=50 use-readdirp=no volume-name=x oom-score-adj=5 reader-thread-count=2 \
    auto-invalidation=off kernel-writeback-cache=on attr-times-granularity=1 xlator-option=a.b=c wait-for-bricks=5; do
    is "$(line h1:/v "$T/mnt" -o $option)" "mortarfs --$option --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "${option%%=*}"
done
is "$(line h1:/v "$T/mnt" -o no-root-squash=yes)" "mortarfs --no-root-squash --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "no-root-squash"
is "$(line h1:/v "$T/mnt" -o fetch-attempts=3,process-name=x)" "mortarfs --volfile-max-fetch-attempts=3 --process-name=fuse.x --volfile-server=h1 --volfile-id=/v T/mnt" "fetch attempts and process name"
is "$(line h1:/v "$T/mnt" -t mortar -o log-level=warning -o "log-file=$T/l")" "mortarfs --log-level=WARNING --log-file=T/l --process-name fuse --volfile-server=h1 --volfile-id=/v T/mnt" "log options, -o twice, -t"

is "$(says h1:/v "$T/mnt" -o bogus=1)" "Invalid option: bogus
rc 1" "an unknown option with a value"
is "$(says h1:/v "$T/mnt" -o bogus)" "Invalid option bogus
rc 1" "an unknown option"
like "$(says h1:/v "$T/mnt" -o sync)" "^mount option 'sync' is not handled \(yet\?\)" "an option that is not handled"
is "$(says h1:/v "$T/mnt" -o 'backup-volfile-servers=a/b')" "ERROR: Invalid backup-volfile-servers specified.. exiting
rc 1" "bad backup servers"
is "$(says h1:/v "$T/none")" "ERROR: Mount point does not exist
Please specify a mount point
Usage:
man 8 /sbin/mount.mortar
rc 1" "no such mount point"
is "$(says nothing "$T/mnt")" "ERROR: Server name/volume name unspecified cannot proceed further..
Please specify correct format
Usage:
man 8 /sbin/mount.mortar
rc 1" "a source that is none"
is "$(says h1:/v /)" "Cannot mount over root
rc 2" "not over root"
is "$(MORTARFS=false "$helper" h1:/v "$T/mnt" 2>&1; echo "rc $?")" "Mounting mortar on $T/mnt failed.
rc 1" "a program that fails"

if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ]; then
    skip "mounted" "needs root and /dev/fuse"
    done_testing
fi
export MORTARFS=${MORTAR_BUILD:-$top/build}/bin/mortarfs
mkdir "$T/brick"
printf 'PRUNEFS = "NFS nfs"\n' >"$UPDATEDB_CONF"
cat >"$T/c.vol" <<EOT
volume posix
  type storage/posix
  option directory $T/brick
end-volume
EOT
ok "mounted" "$helper" "$T/c.vol" "$T/mnt" -o "noatime,log-file=$T/log"
like "$(grep " $T/mnt " /proc/mounts)" "^$T/c.vol $T/mnt fuse.mortar rw,noatime," "the mount table"
is "$(df --output=source "$T/mnt" | tail -n 1)" "$T/c.vol" "df shows the source"
is "$(cat "$UPDATEDB_CONF")" 'PRUNEFS = "fuse.mortar NFS nfs"' "updatedb is told to stay out"
is "$("$helper" "$T/c.vol" "$T/mnt" 2>&1; echo "rc $?")" "mount.mortar: according to mtab, GlusterFS is already mounted on $T/mnt
rc 32" "not twice"
pid=$(pgrep -f "volfile=$T/c.vol")
ok "unmounted" umount "$T/mnt"
gone() { ! kill -0 "$pid"; }
ok "the process ends with the mount" wait_for 10 gone
done_testing
