/* cluster/replicate/heal_daemon.h - what a heal daemon is doing, and what it is told to do (heal_crawl.c).
 *
 * For whoever runs a graph with cluster/replicate in it (mortarfs's control socket, tests). All text about one replica
 * set goes into a dict under keys that begin with a prefix the caller chooses:
 *
 *   PREFIXname                    of the translator
 *   PREFIXdaemon                  1 when it heals by itself, else 0
 *   PREFIXstate                   idle, index, full, waiting (too few bricks) or off (option self-heal-daemon)
 *   PREFIXdue                     1 when a crawl or walk is to begin
 *   PREFIXwaiting PREFIXrunning   heals
 *   PREFIXbricks                  how many, then for each number I: PREFIXI.name .host .up
 *   PREFIXI.found .healed .failed .split .bytes .copied .rate .left .expected   of the present or last crawl: entries found,
 *                                 healed, not healable, in split brain; bytes compared and copied; entries a second;
 *                                 seconds left as far as can be told, or -1
 *   PREFIXI.crawls                how many are remembered, oldest first, then PREFIXI.N.start .end (s since the epoch,
 *                                 end 0: under way) .type (INDEX or FULL) .healed .split .failed
 *   PREFIXtroubles                entries that cannot be healed now, then PREFIXt.N.gfid .path .brick .err .since .tries
 *                                 .why (a word: failed, away, later (once its directory
 *                                 is healed), split-brain, busy)
 */
#pragma once

#include "graph/translator.h"

enum heal_order {
    HEAL_ORDER_INDEX, /* crawl the indices now; entries that were put off are tried again */
    HEAL_ORDER_FULL,  /* walk the whole tree */
    HEAL_ORDER_STOP,  /* end the walk; it can be gone on with by FULL */
};

/* Adds what is known of one cluster/replicate to *d. 0, -ENOMEM or -E2BIG. */
int heal_daemon_report(struct translator *me, const char *prefix, struct dict *d);
/* 0, -EINVAL (not a heal daemon), -ENOTCONN (fewer than two bricks are up; the order is kept and carried out when they
 * are), -ESHUTDOWN. */
int heal_daemon_order(struct translator *me, enum heal_order order);
/* Is `t` a cluster/replicate that heals by itself? */
bool heal_daemon_is(const struct translator *t);
