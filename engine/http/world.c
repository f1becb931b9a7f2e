/*
 * The real clock, pause and chance.
 *
 * They are parameters everywhere else, so that a test of backoff takes no time and a replay gives
 * the same bytes. Chance comes from the kernel for each draw: a generator would need a state, and
 * the only use is to spread retries, a few draws an hour. Where the kernel has none to give the
 * clock's nanoseconds do.
 */
#include "http/http.h"

#include <sys/random.h>
#include <time.h>

static double seconds(clockid_t id)
{
    struct timespec t = {0, 0};

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now(void *ctx)
{
    (void)ctx;
    return seconds(CLOCK_MONOTONIC);
}

static double wall(void *ctx)
{
    (void)ctx;
    return seconds(CLOCK_REALTIME);
}

static void rest(void *ctx, double length, const volatile sig_atomic_t *cancel)
{
    double end = now(ctx) + length, left;

    while (!(cancel && *cancel) && (left = end - now(ctx)) > 0) {
        double step = left < 0.05 ? left : 0.05;
        struct timespec t = {0, (long)(step * 1e9)};
        nanosleep(&t, NULL);
    }
}

static double chance(void *ctx)
{
    uint32_t x;

    (void)ctx;
    if (getrandom(&x, sizeof(x), GRND_NONBLOCK) != (ssize_t)sizeof(x)) {
        struct timespec t = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &t);
        x = (uint32_t)t.tv_nsec * 2654435761u;
    }
    return (double)x / 4294967296.0;
}

const struct fl_http_world *fl_http_world(void)
{
    static const struct fl_http_world real = {now, wall, rest, chance, NULL};

    return &real;
}
