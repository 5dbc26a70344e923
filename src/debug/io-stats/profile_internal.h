/* Counters of debug/io-stats: calls, latencies, bytes, round trips per operation; printed as text and JSON. */
#pragma once

#include "graph/translator.h"
#include <stdio.h>

#define LATENCY_BUCKETS 32 /* bucket i: 2^i .. 2^(i+1)-1 microseconds; bucket 0 also less than 1 */
#define SIZE_BUCKETS    32 /* bucket i: 2^i .. 2^(i+1)-1 bytes */
#define TRIP_BUCKETS    8  /* bucket i: i round trips; the last one: that many or more */

struct op_profile {
    uint64_t calls, failures;
    uint64_t timed; /* calls that were measured */
    uint64_t total_ns, min_ns, max_ns;
    uint64_t latency[LATENCY_BUCKETS];
    uint64_t trips_total, trips_max;
    uint64_t trips[TRIP_BUCKETS];
};

struct profile {
    uint64_t since_ns;
    uint64_t bytes_read, bytes_written;
    uint64_t read_sizes[SIZE_BUCKETS], write_sizes[SIZE_BUCKETS];
    struct op_profile ops[OP_COUNT];
};

struct sample {
    enum op op;
    int result;
    bool is_timed;
    uint64_t took_ns;
    uint32_t round_trips;
};

unsigned log2_bucket(uint64_t v, unsigned buckets);
void profile_add(struct profile *p, const struct sample *s);
/* 0 .. 100 percent of the measured calls took at most this long (upper end of the bucket). */
uint64_t profile_percentile_us(const struct op_profile *p, unsigned percent);
void profile_print_text(FILE *out, const char *title, const struct profile *p, uint64_t now_ns);
void profile_print_json(FILE *out, const char *title, const struct profile *p, uint64_t now_ns);
