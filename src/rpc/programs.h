/* rpc/programs.h - numbers of RPC programs, procedures and credential flavors (docs/protocol.md "Programs"). */
#pragma once

enum rpc_program {
    PROGRAM_DUMP = 123451501,
    PROGRAM_HANDSHAKE = 14398633,
    PROGRAM_PORTMAP = 34123456,
    PROGRAM_CALLBACK = 52743234,
    PROGRAM_FOPS = 1298437,
    /* Ours: what we say to our own kind beyond GlusterFS's programs. Found by the ordinary version dump. The number
     * lies in the range RFC 5531 leaves to users (0x20000000..0x3fffffff); the low half spells "MT". */
    PROGRAM_MORTAR = 0x20004d54,
    PROGRAM_MGMT = 0x20004d55, /* ours: what the command asks a management daemon (docs/management.md) */
};

enum {
    DUMP_VERSION = 1,
    HANDSHAKE_VERSION = 2,
    PORTMAP_VERSION = 1,
    CALLBACK_VERSION = 1,
    FOPS_VERSION = 400,
    MORTAR_PROGRAM_VERSION = 1,
    MGMT_VERSION = 1,
};

enum { DUMP_NULL = 0, DUMP_DUMP = 1, DUMP_PING = 2 };
enum {
    HANDSHAKE_NULL = 0,
    HANDSHAKE_SETVOLUME = 1,
    HANDSHAKE_GETSPEC = 2,
    HANDSHAKE_PING = 3,
    HANDSHAKE_SET_LK_VER = 4
};
enum { PORTMAP_NULL = 0, PORTMAP_PORTBYBRICK = 1, PORTMAP_SIGNIN = 4, PORTMAP_SIGNOUT = 5 };
enum { MGMT_NULL = 0, MGMT_COMMAND = 1, MGMT_HELLO = 2, MGMT_PROVE = 3, MGMT_MESSAGE = 4, MGMT_ASK = 5 };
enum { MORTAR_NULL = 0, MORTAR_COMPOUND = 1, MORTAR_INVALIDATE = 2, MORTAR_HEAL_NEEDED = 3, MORTAR_CONTROL = 4 };

enum callback_proc {
    CALLBACK_FETCHSPEC = 1,
    CALLBACK_CACHE_INVALIDATION = 5,
    CALLBACK_CHILD_UP = 6,
    CALLBACK_CHILD_DOWN = 7,
    CALLBACK_RECALL_LEASE = 8,
    CALLBACK_STATEDUMP = 9,
    CALLBACK_INODELK_CONTENTION = 10,
    CALLBACK_ENTRYLK_CONTENTION = 11,
};

enum fop_proc {
    FOP_NULL = 0,
    FOP_STAT,
    FOP_READLINK,
    FOP_MKNOD,
    FOP_MKDIR,
    FOP_UNLINK,
    FOP_RMDIR,
    FOP_SYMLINK,
    FOP_RENAME,
    FOP_LINK,
    FOP_TRUNCATE,
    FOP_OPEN,
    FOP_READ,
    FOP_WRITE,
    FOP_STATFS,
    FOP_FLUSH,
    FOP_FSYNC,
    FOP_SETXATTR,
    FOP_GETXATTR,
    FOP_REMOVEXATTR,
    FOP_OPENDIR,
    FOP_FSYNCDIR,
    FOP_ACCESS,
    FOP_CREATE,
    FOP_FTRUNCATE,
    FOP_FSTAT,
    FOP_LK,
    FOP_LOOKUP,
    FOP_READDIR,
    FOP_INODELK,
    FOP_FINODELK,
    FOP_ENTRYLK,
    FOP_FENTRYLK,
    FOP_XATTROP,
    FOP_FXATTROP,
    FOP_FGETXATTR,
    FOP_FSETXATTR,
    FOP_RCHECKSUM,
    FOP_SETATTR,
    FOP_FSETATTR,
    FOP_READDIRP,
    FOP_RELEASE,
    FOP_RELEASEDIR,
    FOP_FREMOVEXATTR,
    FOP_FALLOCATE,
    FOP_DISCARD,
    FOP_ZEROFILL,
    FOP_IPC,
    FOP_SEEK,
    FOP_COMPOUND_DEAD,
    FOP_LEASE,
    FOP_GETACTIVELK,
    FOP_SETACTIVELK,
    FOP_ICREATE,
    FOP_NAMELINK,
    FOP_PUT,
    FOP_COPY_FILE_RANGE,
    /* From here on ours: only as steps of MORTAR_COMPOUND. */
    FOP_BLOCKSUMS,
    FOP_PROC_COUNT,
};

enum rpc_flavor {
    AUTH_FLAVOR_NONE = 0,
    AUTH_FLAVOR_UNIX = 1,
    AUTH_FLAVOR_V1 = 5,
    AUTH_FLAVOR_V2 = 390039,
    AUTH_FLAVOR_V3 = 390040,
};

#define MGMT_PORT      24007 /* of a management daemon: where a client without remote-port asks */
#define PRIVILEGED_MAX 1024  /* source ports below are root's */
