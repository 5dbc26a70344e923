/* cluster/replicate/debt.c - records that could not be written when they were due.
 *
 * A session ends without quorum while a child whose connection broke may have lost what it had answered (a brick that
 * lost power). We alone know; so we remember, and record it as soon as enough children are back. A client that dies
 * before leaves only the marks. The marks stay for heal to take off: it may have done so before we come to it, and then
 * what we took off would be those of somebody else.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

#define DEBTS_MAX 4096 /* past it the marks on the bricks must do */

struct debt {
    struct list of_all;
    struct inode *inode;
    enum change change;
    uint32_t lost;
};

static void debt_free(struct replicate *s, struct debt *d)
{
    list_del(&d->of_all);
    s->debt_count--;
    inode_unref(d->inode);
    mem_free(d);
}

static struct debt *debt_of(const struct session *session)
{
    struct replicate *s = replicate_of(session->me);
    struct debt *d;

    list_for_each (d, &s->debts, of_all) {
        if (d->inode == session->inode && d->change == session->change)
            return d;
    }
    d = s->debt_count < DEBTS_MAX ? NEW(struct debt) : NULL;
    if (!d)
        return NULL;
    d->inode = inode_ref(session->inode);
    d->change = session->change;
    list_add_tail(&s->debts, &d->of_all);
    s->debt_count++;
    return d;
}

void debt_add(struct session *session, uint32_t lost)
{
    struct debt *d = debt_of(session);

    if (!d) {
        TLOG(session->me, LOG_WARNING, "debt-dropped", "gfid=%s: a brick may have lost changes; heal will compare",
             GFID_TEXT(&session->inode->gfid));
        return;
    }
    d->lost |= lost;
}

static FIBER int pay(struct translator *me, const struct debt *d)
{
    const struct request nothing = { .op = OP_XATTROP, .inode = d->inode };
    struct call call;
    struct txn *txn;
    int r = -ENOMEM;

    call_init(&call, me->graph);
    txn = txn_new(me, &call, &nothing, d->change);
    if (txn) {
        txn_claim(txn, d->inode, d->change);
        r = txn_record(txn, d->lost);
    }
    txn_free(txn);
    call_done(&call);
    return r;
}

static FIBER void paying_fiber(void *arg)
{
    struct translator *me = arg;
    struct replicate *s = replicate_of(me);
    unsigned left = s->debt_count;

    while (left-- > 0 && !list_empty(&s->debts) && children_admit(me) == 0 && !s->is_stopping) {
        struct debt *d = list_first(&s->debts, struct debt, of_all);
        int r = pay(me, d);

        if (r == 0 || r == -ENOENT || r == -ESTALE) {
            debt_free(s, d);
        } else {
            list_del(&d->of_all);
            list_add_tail(&s->debts, &d->of_all);
        }
    }
    s->is_paying = false;
    replicate_fiber_ended(me);
}

void debts_pay(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    if (list_empty(&s->debts) || s->is_paying || s->is_stopping || children_admit(me) < 0)
        return;
    s->is_paying = replicate_spawn(me, "debts", paying_fiber, me) == 0; /* no memory: at the next change of children */
}

void debts_forget(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    struct debt *d;

    while ((d = list_first(&s->debts, struct debt, of_all)))
        debt_free(s, d);
}
