/* resolve: a user says which copy is right. Texts and exit statuses are those of "gluster volume heal ... split-brain". */
#include "cluster/replicate/heal.h"
#include "cluster/replicate/heal_info.h"
#include "core/mem.h"
#include "mortarheal/commands.h"
#include <stdio.h>

#define FAILED "Volume heal failed.\n"

struct resolving {
    struct volume *v;
    struct call call;
    struct reply *r;
    struct heal_report *report;
    const char *what; /* the file, as the user wrote it */
};

/* What a set says of the file. */
struct place {
    struct translator *set;
    struct inode *inode;  /* NULL: the name leads to different inodes */
    struct inode *parent; /* of the last name; NULL: given by gfid, or the root */
    const char *name;
};

static void place_done(struct place *p)
{
    inode_unref(p->inode);
    inode_unref(p->parent);
    *p = (struct place) { 0 };
}

/* ---- finding ---- */

static FIBER int look_up(struct resolving *w, struct translator *set, struct inode *parent, const char *name,
                         struct inode **ret_inode)
{
    struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name };
    int r = translator_call(set, &w->call, &q, w->r);

    if (r >= 0) {
        *ret_inode = inode_table_get(set->graph, &w->r->stat.gfid, iatt_type(&w->r->stat));
        r = *ret_inode ? 0 : -ENOMEM;
    }
    reply_done(w->r);
    return r;
}

/* Down the path in one set. `text` is cut into names. 0, or -errno of the name that could not be looked up; with -EIO at
 * the last one, place->parent and name are set. */
static FIBER int walk(struct resolving *w, struct translator *set, char *text, struct place *place)
{
    struct inode *at = inode_table_get(set->graph, &gfid_root, S_IFDIR), *next = NULL;
    char *save = NULL;
    int r = at ? 0 : -ENOMEM;

    *place = (struct place) { .set = set };
    for (char *name = strtok_r(text, "/", &save); r == 0 && name; name = strtok_r(NULL, "/", &save)) {
        r = look_up(w, set, at, name, &next);
        inode_unref(place->parent);
        place->parent = at;
        place->name = name;
        at = r == 0 ? next : NULL;
        if (r < 0 && save && *save)
            r = r == -EIO ? -ENOENT : r; /* not the last name */
    }
    place->inode = at;
    return r;
}

static FIBER int find_by_gfid(struct resolving *w, struct translator *set, const struct gfid *gfid, struct place *place)
{
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    int r;

    *place = (struct place) { .set = set, .inode = inode_table_get(set->graph, gfid, 0) };
    if (!place->inode || !view)
        return -ENOMEM;
    r = heal_look(set, &w->call, place->inode, view);
    return r < 0 ? r : view->is_gone ? -ENOENT : 0;
}

/* ---- resolving ---- */

static const char *refusal_text(enum heal_refusal refusal)
{
    switch (refusal) {
    case HEAL_REFUSED_NOT_SPLIT: return "File not in split-brain";
    case HEAL_REFUSED_NOT_ALL:
        return "Failed to obtain replies from all bricks of the replica (are they up?). Cannot resolve split-brain.";
    case HEAL_REFUSED_NO_BIGGER: return "No bigger file";
    case HEAL_REFUSED_NO_LATER: return "No difference in mtime";
    case HEAL_REFUSED_METADATA: return "Use source-brick option to heal metadata split-brain";
    case HEAL_REFUSED_CHILD_AWAY: return "Brick is not up";
    default: return NULL;
    }
}

static const char *verb_name(enum verb verb)
{
    return verb == VERB_BIGGER_FILE ? "bigger-file" : verb == VERB_LATEST_MTIME ? "latest-mtime" : "source-brick";
}

static int choose(const struct resolving *w, struct translator *set, struct heal_choice *ret)
{
    const struct args *a = w->v->args;
    int number;

    switch (a->verb) {
    case VERB_BIGGER_FILE: *ret = (struct heal_choice) { .how = HEAL_CHOOSE_BIGGER }; return 0;
    case VERB_LATEST_MTIME: *ret = (struct heal_choice) { .how = HEAL_CHOOSE_LATEST_MTIME }; return 0;
    default: break;
    }
    number = volume_find_brick(w->v, a->brick);
    if (number < 0 || w->v->bricks[number].set != set)
        return -ENOENT;
    *ret = (struct heal_choice) { .how = HEAL_CHOOSE_CHILD, .child = w->v->bricks[number].child };
    return 0;
}

/* Says what came of it; what the program is to exit with. */
static int tell(const struct resolving *w, int r, bool by_name)
{
    const struct heal_report *report = w->report;
    const char *why = refusal_text(report->refusal);
    int error = r < 0 ? r : report->error;

    if (report->refusal == HEAL_REFUSED_DIRECTORY) {
        printf("'%s' not a valid option for directories.\n", verb_name(w->v->args->verb));
    } else if (why) {
        printf("Healing %s failed: %s.\n", w->what, why);
    } else if (r == 0 && !report->split_brain && (report->outcome == HEAL_DONE || report->outcome == HEAL_CLEAN)) {
        if (by_name)
            printf("GFID split-brain resolved for file %s\n", w->what);
        else
            printf("Healed %s.\n", w->what);
        return 0;
    } else if (report->split_brain && !error) {
        printf("Healing %s failed:Operation not permitted.\n", w->what);
    } else {
        printf("Healing %s failed:%s.\n", w->what, error ? strerror(-error) : heal_outcome_text(report->outcome));
    }
    return EXIT_NOT_DONE;
}

/* Sizes and times say nothing about directories and attributes: what does not fit is refused before anything is done. */
static FIBER enum heal_refusal unfit(struct resolving *w, const struct place *place)
{
    SCOPED(heal_view_free) struct heal_view *view = NULL;

    if (w->v->args->verb == VERB_SOURCE_BRICK || !place->inode)
        return HEAL_REFUSED_NOT;
    if (place->inode->type == S_IFDIR)
        return HEAL_REFUSED_DIRECTORY;
    view = heal_view_new();
    if (view && heal_look(place->set, &w->call, place->inode, view) == 0 && (view->split_brain & HEAL_SPLIT_METADATA))
        return HEAL_REFUSED_METADATA;
    return HEAL_REFUSED_NOT;
}

static FIBER int resolve_place(struct resolving *w, const struct place *place)
{
    struct heal_how how = { .flags = HEAL_RESOLVE };
    int r = choose(w, place->set, &how.choice);

    memset(w->report, 0, sizeof(*w->report));
    if (r < 0)
        return EXIT_NOT_DONE;
    w->report->refusal = unfit(w, place);
    if (w->report->refusal)
        return tell(w, 0, false);
    if (!place->inode) {
        r = heal_name(place->set, &w->call, place->parent, place->name, &how, w->report, NULL);
        return tell(w, r, true);
    }
    if (place->inode->type == S_IFDIR && w->v->args->verb == VERB_SOURCE_BRICK) {
        /* Names are never taken away by a choice: heal makes their union by itself. Attributes may be in split brain. */
        printf("'source-brick' option used on a directory (%s). Performing conservative merge.\n", w->what);
        r = heal_inode(place->set, &w->call, place->inode, &how, w->report);
        if (r == 0 && w->report->refusal == HEAL_REFUSED_NOT_SPLIT) {
            how.flags = 0;
            memset(w->report, 0, sizeof(*w->report));
            r = heal_inode(place->set, &w->call, place->inode, &how, w->report);
        }
        return tell(w, r, false);
    }
    r = heal_inode(place->set, &w->call, place->inode, &how, w->report);
    return tell(w, r, false);
}

/* ---- one file ---- */

static FIBER int lookup_failed(const struct resolving *w, int r)
{
    printf("Lookup failed on %s:%s.\n" FAILED, w->what, strerror(-r));
    return r == -ENOENT ? 2 : -r & 0xff;
}

/* In the set that has it. A file may be in one set only; of a directory every set has a part. */
static FIBER int resolve_file(struct resolving *w)
{
    const struct args *a = w->v->args;
    bool by_gfid = strncmp(w->what, "gfid:", 5) == 0;
    int result = EXIT_NOT_DONE, worst = -ENOENT;
    bool found = false;
    struct gfid gfid;

    if ((!by_gfid && w->what[0] != '/') || (by_gfid && gfid_parse(w->what + 5, &gfid) < 0)) {
        printf("<FILE> must be absolute path w.r.t. the volume, starting with '/'\n" FAILED);
        return EXIT_NOT_DONE;
    }
    for (unsigned i = 0; i < w->v->set_count; i++) {
        SCOPED_FREE char *text = mem_strdup(w->what);
        struct place place = { 0 };
        struct heal_choice choice;
        int r;

        if (!text)
            return exit_of(-ENOMEM);
        if (a->verb == VERB_SOURCE_BRICK && choose(w, w->v->sets[i], &choice) < 0)
            continue;
        r = by_gfid ? find_by_gfid(w, w->v->sets[i], &gfid, &place) : walk(w, w->v->sets[i], text, &place);
        if (r == 0 || (r == -EIO && place.parent)) {
            found = true;
            result = resolve_place(w, &place);
        } else if (r != -ENOENT) {
            worst = r;
        }
        place_done(&place);
        if (found && result == 0)
            break;
    }
    if (!found)
        return lookup_failed(w, worst);
    if (result)
        printf(FAILED);
    return result;
}

/* ---- all that a brick lists ---- */

static FIBER int resolve_all(struct resolving *w, const struct brick *b)
{
    SCOPED(heal_info_free) struct heal_info *info = heal_info_new(b->set);
    const struct heal_info_child *c;
    uint64_t healed = 0;
    int r = info ? heal_info_gather(info, &w->call, HEAL_INFO_NAMES) : -ENOMEM;

    if (r < 0)
        return lookup_failed(w, r);
    c = &info->child[b->child];
    for (uint32_t i = 0; i < c->count; i++) {
        const struct heal_entry *e = &info->entries[c->entries[i]];
        SCOPED(inode_unref) struct inode *inode = inode_table_get(b->set->graph, &e->gfid, e->type);
        SCOPED_FREE char *text = mem_printf("gfid:%s", GFID_TEXT(&e->gfid));
        struct place place = { .set = b->set, .inode = inode };

        if (!inode || !text)
            return exit_of(-ENOMEM);
        if (e->state != HEAL_STATE_SPLIT_BRAIN)
            continue;
        w->what = text;
        healed += resolve_place(w, &place) == 0;
    }
    printf("Status: Connected\nNumber of healed entries: %llu\n\n", (unsigned long long)healed);
    return 0;
}

static FIBER int resolve(struct resolving *w)
{
    const struct args *a = w->v->args;
    int number = a->brick ? volume_find_brick(w->v, a->brick) : 0;

    if (number < 0) {
        printf("\"%s\"- No such brick available in the volume.\n" FAILED, a->brick);
        return EXIT_NOT_DONE;
    }
    if (a->brick && !w->v->bricks[number].is_up) {
        printf("Brick is not up\n" FAILED);
        return EXIT_NOT_DONE;
    }
    w->what = a->file ? a->file : "";
    return a->file ? resolve_file(w) : resolve_all(w, &w->v->bricks[number]);
}

/* What depended on it, as the directory of a name, is healed now and not when its next turn comes. */
static FIBER void tell_daemon(struct volume *v)
{
    SCOPED(dict_unref) struct dict *d = NULL;

    (void)daemon_ask(v->env, v->args, "heal-index", &d, NULL); /* there may be none */
}

FIBER int resolve_run(struct volume *v)
{
    struct resolving *w = NEW(struct resolving);
    int r = -ENOMEM;

    if (w) {
        w->v = v;
        w->r = reply_new();
        w->report = heal_report_new();
        volume_call(v, &w->call, PID_SELF_HEAL);
        if (w->r && w->report)
            r = resolve(w);
        call_done(&w->call);
        reply_free(w->r);
        heal_report_free(w->report);
    }
    mem_free(w);
    if (r == 0)
        tell_daemon(v);
    if (r < 0)
        (void)fprintf(stderr, "mortar-heal: %s\n", strerror(-r));
    return r < 0 ? exit_of(r) : r;
}
