/* Who may do what with an inode: POSIX permission bits and access ACLs, decided from plain values. */
#pragma once

#include "core/base.h"

#define ACL_ACCESS_XATTR  "system.posix_acl_access"
#define ACL_DEFAULT_XATTR "system.posix_acl_default"

enum { MAY_EXEC = 1, MAY_WRITE = 2, MAY_READ = 4 };

enum acl_tag {
    ACL_TAG_USER_OBJ = 0x01,
    ACL_TAG_USER = 0x02,
    ACL_TAG_GROUP_OBJ = 0x04,
    ACL_TAG_GROUP = 0x08,
    ACL_TAG_MASK = 0x10,
    ACL_TAG_OTHER = 0x20,
};

struct acl_entry {
    uint16_t tag, perm;
    uint32_t id; /* USER and GROUP */
};

struct acl {
    uint32_t count;
    struct acl_entry entries[];
};

/* The kernel's xattr form (docs/on-disk.md "ACLs"). 0 and an ACL (returned, mem_free; NULL when it has no entries), or
 * -EINVAL / -ENOMEM. */
int acl_parse(const void *data, size_t size_bytes, struct acl **ret_acl);

struct owner {
    uint32_t uid, gid, mode;
};

struct asker {
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t group_count;
};

bool asker_in_group(const struct asker *who, uint32_t gid);
/* Are all bits of `want` (MAY_*) allowed? acl may be NULL: the mode decides. */
bool acl_allows(const struct owner *owner, const struct acl *acl, const struct asker *who, unsigned want);
