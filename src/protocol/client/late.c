/* What is done for nobody: when the caller of an operation has given up and its answer comes after all, what it left on
 * the brick is undone. A descriptor is closed, a lock given back; else they would stay until the connection ends. */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include <stdio.h>

static bool opens(enum op op)
{
    return op == OP_OPEN || op == OP_OPENDIR || op == OP_CREATE;
}

static bool locks(const struct request *q)
{
    return (q->op == OP_LK || q->op == OP_INODELK || q->op == OP_ENTRYLK) && q->command != LOCK_UNLOCK &&
           q->command != LOCK_GET;
}

bool leaves_something(const struct request *q, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (opens(q[i].op) || locks(&q[i]))
            return true;
    }
    return false;
}

void late_call_free(struct late_call *l)
{
    rpc_call_done(&l->c);
    call_done(&l->who);
    for (uint32_t i = 0; i < l->count; i++) {
        mem_free(l->steps[i].name);
        mem_free(l->steps[i].domain);
    }
    mem_free(l);
}

/* ---- undoing ---- */

static void undone(struct rpc_call *c)
{
    rpc_call_done(c);
    mem_free(c);
}

static void unlock(struct late_call *l, struct late_step *step)
{
    struct rpc_call *c = mem_alloc(sizeof(*c));
    struct xdr_out o;

    /* Without memory the lock stays until the connection ends. */
    if (!c)
        return;
    if (step->proc == FOP_LK)
        l->who.lk_owner = step->undo.lock.owner;
    rpc_call_begin(l->s->peer, c, &o, PROGRAM_FOPS, FOPS_VERSION, step->proc, &l->who);
    c->on_done = undone;
    fop_put_request(&o, &step->undo, false);
    if (rpc_peer_start(l->s->peer, c, &o) < 0)
        mem_free(c);
}

/* Reads the answer of a step and undoes it. false: nothing can be read behind it. */
static bool undo_step(struct late_call *l, struct late_step *step)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fop_answer a = { .r = r };

    if (!r || fop_get_answer(&l->c.body, step->proc, l->c.reply.data, l->is_compound, &a) < 0 || a.op_ret < 0)
        return false;
    if (step->kind == LATE_DESCRIPTOR)
        remote_release_number(l->s, &step->gfid, a.fd, step->proc == FOP_OPENDIR);
    else if (step->kind == LATE_LOCK)
        unlock(l, step);
    return true;
}

static void came_late(struct rpc_call *c)
{
    struct late_call *l = container_of(c, struct late_call, c);
    uint32_t count = 1;

    if (c->err == 0 && l->is_compound) {
        (void)xdr_get_u64(&c->body); /* op_ret, op_errno */
        count = xdr_get_u32(&c->body);
    }
    for (uint32_t i = 0; c->err == 0 && i < MIN(count, l->count); i++) {
        if (l->is_compound && xdr_get_u32(&c->body) != l->steps[i].proc)
            break;
        if (!undo_step(l, &l->steps[i]))
            break;
    }
    late_call_free(l);
}

/* A brick of ours can be told that nobody waits for the lock any more; its late answer then is a refusal, and what the
 * owner held before in that range stays. Others would queue behind the dead request meanwhile. */
void late_end_wait(struct late_call *l)
{
    const struct late_step *step = &l->steps[0];
    struct rpc_call *c = mem_alloc(sizeof(*c));
    struct call who = l->who;
    struct xdr_out o;
    char name[80];

    if (!c)
        return; /* it is undone when it is granted */
    snprintf(name, sizeof(name), "glusterfs.intrlk.%llu-%llu", (unsigned long long)step->undo.lock.start,
             (unsigned long long)step->undo.lock.length);
    struct fop_request w = { .proc = FOP_GETXATTR, .gfid = step->undo.gfid, .named = 1, .text = name };
    who.uid = who.gid = 0; /* whoever may wait may end it */
    who.lk_owner = step->undo.lock.owner;
    rpc_call_begin(l->s->peer, c, &o, PROGRAM_FOPS, FOPS_VERSION, w.proc, &who);
    c->on_done = undone;
    fop_put_request(&o, &w, false);
    if (rpc_peer_start(l->s->peer, c, &o) < 0)
        mem_free(c);
}

/* ---- preparing ---- */

/* The request that undoes a lock, with copies of what it points to. */
static int prepare_unlock(struct late_step *step, const struct request *q, const struct fop_request *w)
{
    step->kind = LATE_LOCK;
    step->undo = *w;
    step->undo.xdata = NULL;
    step->undo.command = 1; /* set, try, unlock: it is 1 for all three */
    if (q->op != OP_ENTRYLK)
        step->undo.type = step->undo.lock.type = LOCK_NONE;
    step->name = w->name ? mem_strdup(w->name) : NULL;
    step->domain = w->text ? mem_strdup(w->text) : NULL;
    step->undo.name = step->name;
    step->undo.text = step->domain;
    /* A descriptor that the same compound opens is closed by then. */
    if (FD_IS_OF_STEP(w->fd))
        step->undo.fd = FD_ANONYMOUS;
    return (w->name && !step->name) || (w->text && !step->domain) ? -ENOMEM : 0;
}

struct late_call *late_call_new(struct remote *s, const struct call *call, const struct request *q,
                                const struct fop_request *w, uint32_t count, bool is_compound)
{
    struct late_call *l = mem_zalloc(sizeof(*l) + count * sizeof(l->steps[0]));

    if (!l)
        return NULL;
    l->s = s;
    l->c.on_late = came_late;
    l->is_compound = is_compound;
    l->count = count;
    call_copy(&l->who, call);
    l->who.groups = NULL;
    l->who.group_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct late_step *step = &l->steps[i];
        step->proc = w[i].proc;
        if (opens(q[i].op)) {
            step->kind = LATE_DESCRIPTOR;
            step->gfid = q[i].inode->gfid;
        } else if (locks(&q[i]) && prepare_unlock(step, &q[i], &w[i]) < 0) {
            late_call_free(l);
            return NULL;
        }
    }
    return l;
}
