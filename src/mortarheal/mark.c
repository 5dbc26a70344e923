/* mark-brick: says of a brick that is new or was emptied that it lacks everything, so that heal fills it. */
#include "cluster/replicate/heal_info.h"
#include "core/mem.h"
#include "mortarheal/commands.h"
#include <stdio.h>

FIBER int mark_run(struct volume *v)
{
    int number = volume_find_brick(v, v->args->brick);
    SCOPED(dict_unref) struct dict *d = dict_new();
    SCOPED(inode_unref) struct inode *root = inode_table_get(v->graph, &gfid_root, S_IFDIR);
    struct request q = { .op = OP_SETXATTR, .inode = root, .xattrs = d };
    const struct brick *b;
    struct call call;
    int r = d && root ? 0 : -ENOMEM;

    if (number < 0) {
        printf("\"%s\"- No such brick available in the volume.\n", v->args->brick);
        return EXIT_NOT_DONE;
    }
    b = &v->bricks[number];
    if (r == 0)
        r = dict_set_str(d, "trusted.replace-brick", b->set->children[b->child]->name);
    volume_call(v, &call, PID_ADD_REPLICA);
    if (r == 0)
        r = translator_call(b->set, &call, &q, NULL);
    call_done(&call);
    if (r < 0) {
        (void)fprintf(stderr, "mortar-heal: %s could not be marked: %s%s\n", b->name, strerror(-r),
                      r == -ENOTCONN ? "; enough other bricks must be up to record it" : "");
        return exit_of(r);
    }
    printf("%s is marked as lacking everything; heal fills it.\n", b->name);
    return 0;
}
