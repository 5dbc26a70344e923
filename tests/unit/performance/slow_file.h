/* A file in memory behind a scripted leaf: every operation takes a seeded while, writes may be short, and others overtake. */
#pragma once

#include "unit/graph/test_graph.h"

#define SLOW_BYTES 8192

struct slow_file {
    uint8_t data[SLOW_BYTES];
    uint64_t size;
    uint64_t changes; /* shown as mtime */
    uint64_t random;  /* state of the generator */
    uint32_t delay_max_ms;
    bool writes_short;
    int fail_next; /* errno of the next write, then cleared */
    uint32_t writes, reads, flushes, fsyncs, in_flight, most_in_flight;
};

/* Makes the leaf of t that file. */
void slow_file_init(struct slow_file *f, struct test *t, uint64_t seed);
uint64_t slow_random(struct slow_file *f);
