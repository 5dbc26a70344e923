/* Commands by name. */
#include "mgmt/command_internal.h"
#include "core/mem.h"
#include <errno.h>
#include <stdio.h>

static const struct command {
    const char *name;
    command_fn run;
    bool is_open; /* also over the network */
} commands[] = {
    { "volume-create", command_volume_create, false },
    { "volume-start", command_volume_start, false },
    { "volume-stop", command_volume_stop, false },
    { "volume-delete", command_volume_delete, false },
    { "volume-set", command_volume_set, false },
    { "volume-reset", command_volume_reset, false },
    { "volume-get", command_volume_get, false },
    { "volume-info", command_volume_info, true },
    { "volume-list", command_volume_list, true },
    { "volume-status", command_volume_status, true },
    { "volume-help", command_volume_help, true },
    { "add-brick", command_add_brick, false },
    { "remove-brick", command_remove_brick, false },
    { "replace-brick", command_replace_brick, false },
    { "heal", command_heal, false },
    { "import", command_import, false },
    { "peer-probe", command_peer_probe, false },
    { "peer-detach", command_peer_detach, false },
    { "peer-status", command_peer_status, true },
    { "uuid", command_uuid, true },
};

const char *request_text(const json_t *request, const char *key)
{
    return json_string_value(json_object_get(request, key));
}

bool request_flag(const json_t *request, const char *key)
{
    return json_is_true(json_object_get(request, key));
}

uint32_t request_number(const json_t *request, const char *key, uint32_t otherwise)
{
    const json_t *value = json_object_get(request, key);
    json_int_t number = json_integer_value(value);

    return json_is_integer(value) && number >= 0 && number <= UINT32_MAX ? (uint32_t)number : otherwise;
}

int request_volume(const struct mortard *d, const json_t *request, struct volume **ret_volume, struct error *err)
{
    const char *name = request_text(request, "name");
    struct volume *v = name ? cluster_find_volume(d->cluster, name) : NULL;

    if (!v)
        return error_set(err, -ENOENT, "Volume %s does not exist", name ? name : "");
    *ret_volume = v;
    return 0;
}

FIBER int command_propose(struct mortard *d, json_t *change, struct error *err)
{
    int r = change ? mortard_change(d, change, err) : -ENOMEM;

    json_decref(change);
    return r;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; name && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

FIBER json_t *command_run(struct mortard *d, const json_t *request, bool is_local)
{
    const struct command *command = find_command(request_text(request, "command"));
    json_t *answer = json_object();
    struct error *err = NEW(struct error);
    int r;

    if (!answer || !err) {
        mem_free(err);
        return answer;
    }
    if (!command)
        r = error_set(err, -EOPNOTSUPP, "this daemon does not know the command \"%s\"",
                      request_text(request, "command") ? request_text(request, "command") : "");
    else if (!is_local && !command->is_open)
        r = error_set(err, -EPERM, "this command is answered over the local socket only");
    else
        r = command->run(d, request, answer, err);
    if (r < 0 && !*err->text)
        (void)error_set(err, r, "%s", strerror(-r));
    (void)json_object_set_new(answer, "ret", json_integer(r < 0 ? -1 : 0));
    (void)json_object_set_new(answer, "errno", json_integer(r < 0 ? -r : 0));
    (void)json_object_set_new(answer, "error", json_string(err->text));
    mem_free(err);
    return answer;
}
