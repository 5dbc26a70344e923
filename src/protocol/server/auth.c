/* Who may come in: docs/protocol.md "Authentication at SETVOLUME". Two votes, by address and by login. One rejection
 * refuses, else one acceptance lets in, else nobody cared and the client is refused. */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

static const char *option_of(const struct auth_question *q, const char *kind, const char *name, const char *what)
{
    SCOPED_FREE char *key = mem_printf("auth.%s.%s.%s", kind, name, what);
    const char *value = NULL;

    if (key && dict_get_str(q->options, key, &value) < 0)
        value = NULL;
    return value;
}

/* Is the address inside "a.b.c.d/nn" or "x::y/nn"? */
static bool in_prefix(const char *host, const char *prefix)
{
    char network[64];
    const char *slash = strchr(prefix, '/');
    uint8_t a[16], b[16];
    char *end;

    if (!slash || (size_t)(slash - prefix) >= sizeof(network))
        return false;
    memcpy(network, prefix, (size_t)(slash - prefix));
    network[slash - prefix] = '\0';
    int family = strchr(network, ':') ? AF_INET6 : AF_INET;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    if (end == slash + 1 || *end || bits > (family == AF_INET ? 32 : 128))
        return false;
    if (inet_pton(family, network, a) != 1 || inet_pton(family, host, b) != 1)
        return false;
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    unsigned mask = 0xff00u >> (bits % 8) & 0xff;
    return bits % 8 == 0 || (a[bits / 8] & mask) == (b[bits / 8] & mask);
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static bool address_matches(const char *pattern, const struct auth_question *q)
{
    const char *host = q->host;
    char key[512];

    if (strcmp(pattern, "localhost") == 0 && is_loopback(host))
        return true;
    if ((size_t)snprintf(key, sizeof(key), "%s/%s", pattern, host) < sizeof(key) && dict_has(q->hosts, key))
        return true;
    return fnmatch(pattern, host, 0) == 0 || in_prefix(host, pattern);
}

/* "/dir(a|b)", "/dir", "!a", "a". *ret_negated: it began with '!'. Spoils `entry`. */
static bool entry_matches(char *entry, const struct auth_question *q, bool *ret_negated)
{
    char *save, *addresses = entry;

    *ret_negated = entry[0] == '!';
    if (*ret_negated)
        return address_matches(entry + 1, q);
    if (entry[0] != '/')
        return address_matches(entry, q);
    addresses = strchr(entry, '(');
    if (addresses)
        *addresses++ = '\0';
    if (strcmp(entry, q->subdir && q->subdir[0] ? q->subdir : "/") != 0)
        return false;
    if (!addresses)
        return true;
    for (char *one = strtok_r(addresses, "|)", &save); one; one = strtok_r(NULL, "|)", &save)) {
        if (address_matches(one, q))
            return true;
    }
    return false;
}

/* AUTH_ACCEPT: an entry matches; AUTH_REJECT: a negated one does. The first that matches counts. */
static enum auth_vote list_matches(const char *list, const struct auth_question *q)
{
    SCOPED_FREE char *copy = mem_strdup(list);
    char *save;
    bool is_negated;

    if (!copy)
        return AUTH_REJECT;
    for (char *entry = strtok_r(copy, ", \t", &save); entry; entry = strtok_r(NULL, ", \t", &save)) {
        if (entry_matches(entry, q, &is_negated))
            return is_negated ? AUTH_REJECT : AUTH_ACCEPT;
    }
    return AUTH_DONT_CARE;
}

enum auth_vote auth_by_address(const struct auth_question *q)
{
    const char *allow = option_of(q, "addr", q->brick, "allow") ?: option_of(q, "ip", q->brick, "allow");
    const char *reject = option_of(q, "addr", q->brick, "reject") ?: option_of(q, "ip", q->brick, "reject");

    if (!allow && !reject)
        return AUTH_DONT_CARE;
    if (q->port >= PRIVILEGED_MAX && !q->allows_insecure)
        return AUTH_REJECT;
    if (reject && list_matches(reject, q) == AUTH_ACCEPT)
        return AUTH_REJECT;
    return allow ? list_matches(allow, q) : AUTH_DONT_CARE;
}

static bool user_is_listed(const char *list, const char *username)
{
    SCOPED_FREE char *copy = mem_strdup(list);
    char *save;

    if (!copy)
        return false;
    for (char *entry = strtok_r(copy, ", \t", &save); entry; entry = strtok_r(NULL, ", \t", &save)) {
        if (fnmatch(entry, username, 0) == 0)
            return true;
    }
    return false;
}

enum auth_vote auth_by_login(const struct auth_question *q)
{
    const char *allow = option_of(q, "login", q->brick, "allow");

    if (!q->username || !allow || !user_is_listed(allow, q->username))
        return q->is_strict ? AUTH_REJECT : AUTH_DONT_CARE;
    const char *password = option_of(q, "login", q->username, "password");
    return password && q->password && strcmp(password, q->password) == 0 ? AUTH_ACCEPT : AUTH_REJECT;
}

bool auth_check(const struct auth_question *q, bool *ret_trusted)
{
    enum auth_vote address = auth_by_address(q), login = auth_by_login(q);

    *ret_trusted = login == AUTH_ACCEPT;
    if (address == AUTH_REJECT || login == AUTH_REJECT)
        return false;
    return address == AUTH_ACCEPT || login == AUTH_ACCEPT;
}
