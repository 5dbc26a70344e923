/* Adding up and printing what debug/io-stats sees. */
#include "debug/io-stats/profile_internal.h"

unsigned log2_bucket(uint64_t v, unsigned buckets)
{
    unsigned bucket = v ? 63 - (unsigned)__builtin_clzll(v) : 0;

    return MIN(bucket, buckets - 1);
}

static void add_latency(struct op_profile *o, uint64_t took_ns)
{
    if (o->timed == 0 || took_ns < o->min_ns)
        o->min_ns = took_ns;
    o->max_ns = MAX(o->max_ns, took_ns);
    o->timed++;
    o->total_ns += took_ns;
    o->latency[log2_bucket(took_ns / 1000, LATENCY_BUCKETS)]++;
}

void profile_add(struct profile *p, const struct sample *s)
{
    struct op_profile *o = &p->ops[s->op];

    o->calls++;
    if (s->result < 0)
        o->failures++;
    if (s->is_timed)
        add_latency(o, s->took_ns);
    o->trips_total += s->round_trips;
    o->trips_max = MAX(o->trips_max, (uint64_t)s->round_trips);
    o->trips[MIN(s->round_trips, (uint32_t)TRIP_BUCKETS - 1)]++;
    if (s->result <= 0)
        return;
    if (s->op == OP_READ) {
        p->bytes_read += (uint64_t)s->result;
        p->read_sizes[log2_bucket((uint64_t)s->result, SIZE_BUCKETS)]++;
    } else if (s->op == OP_WRITE) {
        p->bytes_written += (uint64_t)s->result;
        p->write_sizes[log2_bucket((uint64_t)s->result, SIZE_BUCKETS)]++;
    }
}

uint64_t profile_percentile_us(const struct op_profile *p, unsigned percent)
{
    uint64_t wanted = (p->timed * percent + 99) / 100, seen = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        seen += p->latency[i];
        if (seen >= wanted && seen > 0)
            return (2ull << i) - 1;
    }
    return 0;
}

static double average_us(const struct op_profile *o)
{
    return o->timed ? (double)o->total_ns / (double)o->timed / 1000 : 0;
}

/* ---- text ---- */

static void print_sizes(FILE *out, const char *label, const uint64_t *sizes)
{
    for (unsigned i = 0; i < SIZE_BUCKETS; i++) {
        if (sizes[i])
            fprintf(out, "%-8s %10llu b+ : %llu\n", label, 1ull << i, (unsigned long long)sizes[i]);
    }
}

static void print_op(FILE *out, enum op op, const struct op_profile *o)
{
    fprintf(out, "%-12s %10llu %8llu %10.2f %10.2f %10.2f %8llu %8llu %7.2f %6llu\n", op_name(op),
            (unsigned long long)o->calls, (unsigned long long)o->failures, average_us(o), (double)o->min_ns / 1000,
            (double)o->max_ns / 1000, (unsigned long long)profile_percentile_us(o, 50),
            (unsigned long long)profile_percentile_us(o, 99), (double)o->trips_total / (double)o->calls,
            (unsigned long long)o->trips_max);
}

void profile_print_text(FILE *out, const char *title, const struct profile *p, uint64_t now_ns)
{
    fprintf(out, "=== %s stats ===\n", title);
    fprintf(out, "Duration     : %llu secs\n", (unsigned long long)((now_ns - p->since_ns) / 1000000000));
    fprintf(out, "BytesRead    : %llu\n", (unsigned long long)p->bytes_read);
    fprintf(out, "BytesWritten : %llu\n\n", (unsigned long long)p->bytes_written);
    print_sizes(out, "Reads", p->read_sizes);
    print_sizes(out, "Writes", p->write_sizes);
    fprintf(out, "%-12s %10s %8s %10s %10s %10s %8s %8s %7s %6s\n", "Fop", "Calls", "Errors", "Avg us", "Min us",
            "Max us", "p50 us", "p99 us", "Trips", "Max");
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (p->ops[op].calls)
            print_op(out, op, &p->ops[op]);
    }
    fputc('\n', out);
}

/* ---- JSON ---- */

static void print_array(FILE *out, const char *key, const uint64_t *v, unsigned count)
{
    while (count > 0 && v[count - 1] == 0)
        count--;
    fprintf(out, "\"%s\":[", key);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)v[i]);
    fputc(']', out);
}

static void print_op_json(FILE *out, enum op op, const struct op_profile *o)
{
    fprintf(out, "\"%s\":{\"calls\":%llu,\"errors\":%llu,\"avg_us\":%.3f,\"min_us\":%.3f,\"max_us\":%.3f,", op_name(op),
            (unsigned long long)o->calls, (unsigned long long)o->failures, average_us(o), (double)o->min_ns / 1000,
            (double)o->max_ns / 1000);
    print_array(out, "latency_us_log2", o->latency, LATENCY_BUCKETS);
    fprintf(out, ",\"round_trips\":%llu,\"round_trips_max\":%llu,", (unsigned long long)o->trips_total,
            (unsigned long long)o->trips_max);
    print_array(out, "round_trips_histogram", o->trips, TRIP_BUCKETS);
    fputc('}', out);
}

void profile_print_json(FILE *out, const char *title, const struct profile *p, uint64_t now_ns)
{
    const char *comma = "";

    fprintf(out, "\"%s\":{\"duration_s\":%.3f,\"bytes_read\":%llu,\"bytes_written\":%llu,", title,
            (double)(now_ns - p->since_ns) / 1e9, (unsigned long long)p->bytes_read,
            (unsigned long long)p->bytes_written);
    print_array(out, "read_sizes_log2", p->read_sizes, SIZE_BUCKETS);
    fputc(',', out);
    print_array(out, "write_sizes_log2", p->write_sizes, SIZE_BUCKETS);
    fputs(",\"ops\":{", out);
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (!p->ops[op].calls)
            continue;
        fputs(comma, out);
        print_op_json(out, op, &p->ops[op]);
        comma = ",";
    }
    fputs("}}", out);
}
