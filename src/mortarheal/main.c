/* mortar-heal - what a replicated volume has to heal, heal, and the end of split brains. */
#include "core/env_real.h"
#include "core/mem.h"
#include "mortarheal/commands.h"
#include <signal.h>
#include <stdio.h>

struct run {
    struct env *env;
    struct args *args;
};

static FIBER int on_volume(struct run *run, FIBER int (*command)(struct volume *v))
{
    struct volume *v = NEW(struct volume);
    struct error err = { "" };
    int r = v ? volume_open(v, run->env, run->args, false, &err) : -ENOMEM;

    if (r < 0) {
        /* As "gluster volume heal": the reason, and that it failed. */
        printf("%s\nVolume heal failed.\n", err.text[0] ? err.text : strerror(-r));
        r = exit_of(r);
    } else {
        r = command(v);
    }
    if (v)
        volume_close(v);
    mem_free(v);
    return r;
}

static FIBER int carry_out(struct run *run)
{
    switch (run->args->verb) {
    case VERB_INDEX:
    case VERB_FULL:
    case VERB_STOP: return full_run(run->env, run->args);
    case VERB_WATCH: return watch_run(run->env, run->args);
    case VERB_STATUS: return status_run(run->env, run->args);
    case VERB_STATISTICS: return statistics_run(run->env, run->args);
    case VERB_INFO:
    case VERB_SUMMARY:
    case VERB_SPLIT_BRAIN:
    case VERB_COUNT: return on_volume(run, info_run);
    case VERB_SOURCE_BRICK:
    case VERB_BIGGER_FILE:
    case VERB_LATEST_MTIME: return on_volume(run, resolve_run);
    case VERB_MARK_BRICK: return on_volume(run, mark_run);
    }
    return EXIT_NOT_DONE;
}

static FIBER void start(void *arg)
{
    struct run *run = arg;

    env_real_stop(run->env, carry_out(run));
}

static int run_loop(struct args *args)
{
    enum log_level level = LOG_WARNING;
    struct error err = { "" };
    struct log *log = log_discard();
    struct run run = { .args = args };
    int code = exit_of(-ENOMEM);

    if (args->c.log_level)
        (void)log_level_parse(args->c.log_level, &level); /* checked by args_parse() */
    if (args->c.log_file && log_open(args->c.log_file, level, &log, &err) < 0) {
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text);
        return EXIT_NOT_DONE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    run.env = env_real_new(log, 1);
    if (run.env) {
        if (args->c.log_file)
            log_set_env(log, run.env);
        if (fiber_spawn(run.env, "command", start, &run) == 0)
            code = env_real_run(run.env);
        if (args->c.log_file)
            log_set_env(log, NULL);
        env_real_free(run.env);
    }
    log_close(log);
    return code;
}

int main(int argc, char **argv)
{
    struct args args;
    struct error err = { "" };
    int code = 0;

    if (args_parse(&args, argc, argv, &err) < 0) {
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text[0] ? err.text : "out of memory");
        code = EXIT_NOT_DONE;
    } else if (args.wants_help) {
        args_print_help();
    } else if (args.wants_version) {
        printf("mortar-heal " MORTAR_VERSION "\n");
    } else {
        code = run_loop(&args);
    }
    args_release(&args);
    return code;
}
