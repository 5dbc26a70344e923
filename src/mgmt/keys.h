/* mgmt/keys.h - the keys of `volume set`: what each is called, accepts, means, and where it lands in volume files.
 *
 * One row per (key, translator type): a key that two types read has two rows, the first of which tells its values. Rows
 * are in the order in which `volume get V all` prints them. The table holds every key of GlusterFS 10.3, so that volumes
 * made there can be taken over; `effect` says what becomes of it here.
 */
#pragma once

#include "core/base.h"
#include "core/error.h"

enum key_kind {
    KEY_TEXT,
    KEY_BOOL,
    KEY_INT,
    KEY_SIZE,
    KEY_PERCENT,
    KEY_PERCENT_OR_SIZE,
    KEY_TIME,
    KEY_WORDS, /* one of .words */
    KEY_PATH,
    KEY_ADDRESSES,
};

enum key_flag {
    KEY_GLOBAL = 1,    /* of the cluster, not of one volume: `volume set all` */
    KEY_HIDDEN = 2,    /* may be set, not shown by `volume get V all` */
    KEY_CLIENT = 4,    /* clients must know it: raises the volume's client-op-version */
    KEY_PROTECTED = 8, /* reset with `force` only */
    KEY_FIXED = 16,    /* never reset */
    KEY_SWITCH = 32,   /* brings a translator into the graph or takes it out */
};

enum key_effect {
    KEY_ACTS,
    KEY_ACCEPTED, /* stored and shown; leaving it out changes nothing that was promised */
    KEY_REFUSED,
};

struct volume_key {
    const char *name;   /* "cluster.quorum-type" */
    const char *type;   /* translator type that reads it, or a word for the management daemon */
    const char *option; /* its name in the volume file; NULL: not copied, the generator decides by itself */
    enum key_kind kind;
    const char *def;     /* value when not set, as `volume get` shows it; NULL: none */
    const char *written; /* written into volume files when not set; NULL: left out */
    bool has_range;
    int64_t min, max;    /* max 0: no upper limit */
    const char *words;   /* "none, auto, fixed" */
    uint32_t op_version; /* the oldest cluster that knows it; 0: all */
    unsigned flags;      /* enum key_flag */
    enum key_effect effect;
    const char *help;
};

/* Row number i; NULL past the last. */
const struct volume_key *volume_key_at(size_t i);

/* The first row of a key given in full, or by the part after the first dot where that is unambiguous. NULL: none. */
const struct volume_key *volume_key_find(const char *name);
/* Is `text` a value for it? 0, or -EINVAL/-ERANGE with GlusterFS's sentence, which names the option of the translator:
 * `option quorum-type wrong: 'wrong' is not valid (possible options are none, auto, fixed.)`. */
int volume_key_check(const struct volume_key *key, const char *text, struct error *err);
/* The key that is spelled most like `name`, for "Did you mean"; NULL: nothing near. */
const char *volume_key_nearest(const char *name);
