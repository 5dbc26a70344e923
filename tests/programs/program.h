/* What the test programs share: a way to end with a message, and a clock. A program is one .c file; it prints what it
 * saw on stdout and ends with 0 when all was well, 1 when the file system was wrong, 2 when it was called wrongly. */
#ifndef MORTAR_TESTS_PROGRAM_H
#define MORTAR_TESTS_PROGRAM_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_GOOD = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* Ends the program as EXIT_WRONG with a line on stdout; %m is the error of the last call. */
static inline void __attribute__((noreturn, format(printf, 1, 2))) wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    _exit(EXIT_WRONG);
}

/* The value of a call that must not give -1. */
#define MUST(call) must_((long)(call), #call, __FILE__, __LINE__)
static inline long must_(long result, const char *text, const char *file, int line)
{
    if (result == -1)
        wrong("%s:%d: %s: %m", file, line, text);
    return result;
}

static inline double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

/* A generator whose sequence depends on the seed only (xorshift64*). */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

#endif
