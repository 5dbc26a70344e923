/* ACLs from a brick: any bytes parse or are refused, and deciding over them ends. */
#include "core/mem.h"
#include "features/access-control/acl_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    SCOPED_FREE struct acl *acl = NULL;
    struct owner owner = { .uid = 1, .gid = 2, .mode = 0640 };
    uint32_t groups[] = { 5, 6 };

    if (acl_parse(data, size_bytes, &acl) < 0)
        return 0;
    for (uint32_t uid = 0; uid < 8; uid++) {
        struct asker who = { .uid = uid, .gid = uid + 1, .groups = groups, .group_count = 2 };
        for (unsigned want = 0; want < 8; want++)
            (void)acl_allows(&owner, acl, &who, want); /* the answer is the kernel's business to compare */
    }
    return 0;
}
