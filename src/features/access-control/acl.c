/* The access decision of POSIX.1e: owner, named users, groups, the rest. */
#include "features/access-control/acl_internal.h"
#include "core/mem.h"

#define ACL_VERSION     2
#define ACL_HEADER      4
#define ACL_ENTRY_BYTES 8

static uint16_t get_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get_le32(const uint8_t *p)
{
    return (uint32_t)get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}

int acl_parse(const void *data, size_t size_bytes, struct acl **ret_acl)
{
    const uint8_t *p = data;

    if (size_bytes < ACL_HEADER || (size_bytes - ACL_HEADER) % ACL_ENTRY_BYTES || get_le32(p) != ACL_VERSION)
        return -EINVAL;
    uint32_t count = (uint32_t)((size_bytes - ACL_HEADER) / ACL_ENTRY_BYTES);
    if (count == 0) {
        *ret_acl = NULL;
        return 0;
    }
    struct acl *acl = mem_alloc(sizeof(*acl) + count * sizeof(acl->entries[0]));
    if (!acl)
        return -ENOMEM;
    acl->count = count;
    p += ACL_HEADER;
    for (uint32_t i = 0; i < count; i++, p += ACL_ENTRY_BYTES)
        acl->entries[i] = (struct acl_entry) { .tag = get_le16(p), .perm = get_le16(p + 2), .id = get_le32(p + 4) };
    *ret_acl = acl;
    return 0;
}

bool asker_in_group(const struct asker *who, uint32_t gid)
{
    if (who->gid == gid)
        return true;
    for (uint32_t i = 0; i < who->group_count; i++) {
        if (who->groups[i] == gid)
            return true;
    }
    return false;
}

static bool mode_allows(const struct owner *owner, const struct asker *who, unsigned want)
{
    uint32_t mode = owner->mode;

    if (who->uid == owner->uid)
        mode >>= 6;
    else if (asker_in_group(who, owner->gid))
        mode >>= 3;
    return (mode & want) == want;
}

/* Permissions of the first entry with this tag (and id), or -1. */
static int find_perm(const struct acl *acl, uint16_t tag, const uint32_t *id)
{
    for (uint32_t i = 0; i < acl->count; i++) {
        if (acl->entries[i].tag == tag && (!id || acl->entries[i].id == *id))
            return acl->entries[i].perm;
    }
    return -1;
}

/* One group that grants all of `want` is enough; a group that matches but does not grant shuts the rest out. */
static bool groups_allow(const struct owner *owner, const struct acl *acl, const struct asker *who, unsigned want,
                         unsigned mask, bool *ret_matched)
{
    *ret_matched = false;
    for (uint32_t i = 0; i < acl->count; i++) {
        const struct acl_entry *e = &acl->entries[i];
        bool matches = (e->tag == ACL_TAG_GROUP_OBJ && asker_in_group(who, owner->gid)) ||
                       (e->tag == ACL_TAG_GROUP && asker_in_group(who, e->id));
        if (!matches)
            continue;
        *ret_matched = true;
        if ((e->perm & mask & want) == want)
            return true;
    }
    return false;
}

bool acl_allows(const struct owner *owner, const struct acl *acl, const struct asker *who, unsigned want)
{
    bool matched;

    if (!acl)
        return mode_allows(owner, who, want);
    if (who->uid == owner->uid) {
        int perm = find_perm(acl, ACL_TAG_USER_OBJ, NULL);
        return perm >= 0 && ((unsigned)perm & want) == want;
    }
    int mask_entry = find_perm(acl, ACL_TAG_MASK, NULL);
    unsigned mask = mask_entry < 0 ? 7 : (unsigned)mask_entry;
    int perm = find_perm(acl, ACL_TAG_USER, &who->uid);
    if (perm >= 0)
        return ((unsigned)perm & mask & want) == want;
    if (groups_allow(owner, acl, who, want, mask, &matched))
        return true;
    if (matched)
        return false;
    perm = find_perm(acl, ACL_TAG_OTHER, NULL);
    return perm >= 0 && ((unsigned)perm & want) == want;
}
