/* cluster/replicate/witness_internal.h - state of the witness's files: witness.c (life, belief), witness_gate.c
 * (operations), witness_enrol.c (identity, healing), witness_brick.c (the thin arbiter). */
#pragma once

#include "cluster/replicate/replicate_internal.h"

#define WITNESS_WAIT_MS 10000                 /* for the witness, or a token; then the operation fails */
#define WITNESS_KEY     "trusted.afr.witness" /* on the root of the children: the witness's identity */

/* A lock that backs a belief: on a child of the pair, and with the same owner at the witness. */
struct token {
    unsigned child;
    uint32_t epoch; /* of the child when the lock was asked for */
    struct lk_owner owner;
};

/* Whose identity is written on a child. */
struct enrolment {
    bool is_known;
    uint32_t epoch; /* of the child when it was read */
    struct gfid id; /* null: none is written */
};

struct witness {
    const struct witness_class *class;
    struct translator *me;
    bool is_up;
    uint32_t epoch;     /* raised whenever its connection goes or comes */
    char *domain;       /* of tokens */
    struct list asking; /* struct witness_call: what stop cancels */

    struct token token;   /* while s->quorum.stale is set */
    bool is_acquiring;    /* one at a time */
    bool is_recalled;     /* the belief ends once nothing that relies on it is under way; new operations wait */
    uint32_t users;       /* operations in the gate */
    struct waitq changes; /* of all these */

    uint32_t grants;  /* reads under way that have the witness's word for */
    uint32_t granted; /* this child, the only one up */

    struct enrolment of[2];
    bool is_enrolled, is_enrolling;
    struct timer again;
    bool has_warned;

    /* thin arbiter */
    unsigned child; /* its number among our children */
    char *file_name;
    struct dict *ask;

    uint64_t blames_made, asked, recalls, refusals; /* statedump */
};

/* A call of our own to a child or the witness. */
struct witness_call {
    struct list of_asking;
    struct call call;
};
void witness_call_begin(struct witness *w, struct witness_call *c, const struct lk_owner *owner);
void witness_call_end(struct witness_call *c);

extern const struct witness_class witness_brick_class;
int witness_brick_init(struct translator *me, struct error *err);
void witness_brick_done(struct witness *w);

/* Takes a token, shared or (LOCK_WRITE) alone. 0; nothing is held after an error. */
FIBER int token_take(struct translator *me, struct token *token, unsigned child, enum lock_type type);
FIBER void token_give_back(struct translator *me, const struct token *token);

/* Is this witness the one written on the child? 0, -ESTALE: no, or what asking the child said. */
FIBER int witness_check_identity(struct translator *me, unsigned child, const struct gfid *id);
/* Enrols the witness when all are there and it is not known to be enrolled; in the background. */
void witness_enrol_start(struct translator *me);

static inline unsigned other_child(unsigned child)
{
    return 1 - child;
}

/* Exactly one child of the pair is up. */
static inline bool is_lone(const struct replicate *s)
{
    return s->up && s->up != s->all;
}
