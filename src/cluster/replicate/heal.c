/* cluster/replicate/heal.c - one inode: what is wanted, in which order, and the report. */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"

struct heal_report *heal_report_new(void)
{
    return NEW(struct heal_report);
}

void heal_report_free(struct heal_report *report)
{
    mem_free(report);
}

struct heal_view *heal_view_new(void)
{
    return NEW(struct heal_view);
}

void heal_view_free(struct heal_view *view)
{
    mem_free(view);
}

const char *heal_outcome_text(enum heal_outcome outcome)
{
    static const char *const texts[] = {
        [HEAL_CLEAN] = "clean",
        [HEAL_DONE] = "done",
        [HEAL_BUSY] = "busy",
        [HEAL_LEFT] = "left",
        [HEAL_SPLIT_BRAIN] = "split-brain",
        [HEAL_ERROR] = "error",
    };

    return (unsigned)outcome < ARRAY_SIZE(texts) ? texts[outcome] : "?";
}

FIBER int heal_inode(struct translator *me, struct call *call, struct inode *inode, const struct heal_how *how,
                     struct heal_report *ret)
{
    return -ENOSYS;
}

FIBER int heal_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                    const struct heal_how *how, struct heal_report *ret, struct inode **ret_inode)
{
    return -ENOSYS;
}

FIBER int heal_clean_anonymous(struct translator *me, struct call *call, const struct heal_how *how)
{
    return -ENOSYS;
}

FIBER int heal_look(struct translator *me, struct call *call, struct inode *inode, struct heal_view *ret)
{
    return -ENOSYS;
}

FIBER int heal_look_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                         struct heal_view *ret)
{
    return -ENOSYS;
}
