/* What volumes need of the heal tool: a walk that is asked for, and marks on bricks that are new. */
#include "core/mem.h"
#include "mgmt/command_internal.h"
#include <errno.h>
#include <stdio.h>

/* mortar-heal, asking us for the volume file over our socket. `a` and `b` may be NULL. */
static FIBER int run_tool(struct mortard *d, const char *volume, const char *a, const char *b,
                          char why[static WHY_BYTES])
{
    SCOPED_FREE char *program = mem_strdup(d->options->heal_program);
    SCOPED_FREE char *server = mem_printf("--volfile-server=%s", d->options->socket_path);
    SCOPED_FREE char *id = mem_printf("--volfile-id=%s", volume);
    SCOPED_FREE char *first = a ? mem_strdup(a) : NULL;
    SCOPED_FREE char *second = b ? mem_strdup(b) : NULL;
    char transport[] = "--volfile-server-transport=unix";
    char *words[] = { program, server, transport, id, first, second, NULL };

    if (!program || !server || !id || (a && !first) || (b && !second))
        return -ENOMEM;
    return program_run(d, words, why);
}

FIBER void heal_mark_bricks(struct mortard *d, const char *volume, const json_t *bricks)
{
    SCOPED_FREE char *name = mem_strdup(volume); /* the state may change meanwhile */
    char *why = mem_zalloc(WHY_BYTES);
    size_t i;
    json_t *brick;

    json_array_foreach(bricks, i, brick)
    {
        const char *text = json_string_value(brick);

        if (name && why && text && run_tool(d, name, "mark-brick", text, why) < 0)
            LOG(env_log(d->env), LOG_ERROR, "mortard", "brick-not-marked",
                "volume=%s brick=%s reason=\"%s\"; run \"mortar-heal ... mark-brick %s\" when the volume's bricks are up",
                name, text, why, text);
    }
    mem_free(why);
}

/* The tool does the work by itself, and the command does not wait for it. */
struct background {
    struct mortard *d;
    char *volume;
    bool is_full;
};

static FIBER void heal_in_background(void *arg)
{
    struct background *b = arg;
    char *why = mem_zalloc(WHY_BYTES);

    if (why && run_tool(b->d, b->volume, b->is_full ? "full" : NULL, NULL, why) < 0)
        LOG(env_log(b->d->env), LOG_WARNING, "mortard", "heal-unfinished", "volume=%s reason=\"%s\"", b->volume, why);
    mem_free(why);
    b->d->heals--;
    (void)waitq_wake_all(&b->d->reconciled, 0); /* mortard_stop waits */
    mem_free(b->volume);
    mem_free(b);
}

int command_heal(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    struct background *b;
    struct volume *v;
    int r = request_volume(d, request, &v, err);

    (void)answer;
    if (r < 0)
        return r;
    if (v->kind != VOLUME_REPLICATE)
        return error_set(err, -EINVAL, "Volume %s is not of type replicate or disperse", v->name);
    if (v->state != VOLUME_STARTED)
        return error_set(err, -EINVAL, "Volume %s is not started.", v->name);
    if (!volume_option_is_on(v, "cluster.self-heal-daemon"))
        return error_set(err, -EINVAL, "Self-heal-daemon is disabled. Heal will not be triggered on volume %s",
                         v->name);
    b = NEW(struct background);
    if (!b)
        return -ENOMEM;
    *b = (struct background) { d, mem_strdup(v->name), request_flag(request, "full") };
    if (!b->volume || fiber_spawn(d->env, "heal", heal_in_background, b) < 0) {
        mem_free(b->volume);
        mem_free(b);
        return -ENOMEM;
    }
    d->heals++;
    return 0;
}
