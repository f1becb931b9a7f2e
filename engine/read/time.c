/*
 * Times as logs write them.
 *
 * One function reads a time at the start of a slice in any form that the frames of prefix*.c use.
 * The first bytes decide which form is tried: a digit pattern or a month's name. No locale, no
 * strptime(): both would make one log give two answers on two machines, and strptime() wants a NUL.
 *
 * A part that is out of range (month 13, second 61) makes the whole thing "not a time"; that is
 * what keeps tqdm's "11/412 [04:36" and version numbers from being dates. A zone is kept only when
 * the log wrote one. Only "Z", "UTC", "GMT" and numeric offsets are understood: names such as
 * "CST" mean three different things.
 */
#include "read/prefix.h"

#include <stdio.h>

#include "base/alloc.h"

#define US 1000000LL
#define DAY_US (86400LL * US)

struct cur {
    const char *p, *end;
};

struct date {
    int year; /* 0: not said */
    int month, day;
};

static bool digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static bool at(const struct cur *c, size_t i, char want)
{
    return (size_t)(c->end - c->p) > i && c->p[i] == want;
}

/* Value of `n` digits at p, or -1. */
static int num(const struct cur *c, size_t off, size_t n)
{
    int v = 0;

    if ((size_t)(c->end - c->p) < off + n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!digit(c->p[off + i]))
            return -1;
        v = v * 10 + (c->p[off + i] - '0');
    }
    return v;
}

/* How many digits stand at `off`, at most `max`. */
static size_t run(const struct cur *c, size_t off, size_t max)
{
    size_t n = 0;

    while (n < max && off + n < (size_t)(c->end - c->p) && digit(c->p[off + n]))
        n++;
    return n;
}

int64_t fl_days_from_civil(int y, unsigned m, unsigned d)
{
    /* Years start in March, so that the leap day is their last one. */
    int64_t year = (int64_t)y - (m <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t yoe = year - era * 400;
    int64_t doy = (153 * (int64_t)(m > 2 ? m - 3 : m + 9) + 2) / 5 + (int64_t)d - 1;

    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void civil_from_days(int64_t days, int *y, int *m, int *d)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = (int)(yoe + era * 400 + (*m <= 2));
}

static bool date_ok(const struct date *d)
{
    static const unsigned char most[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (d->month < 1 || d->month > 12 || d->day < 1 || d->day > most[d->month - 1])
        return false;
    return d->year == 0 || (d->year >= 1970 && d->year <= 2199);
}

/* ".123456789", ",123", ":123" and CANN's ".123.456": microseconds. */
static int64_t fraction(struct cur *c)
{
    int64_t us = 0, scale = 100000;
    size_t n;

    if (!(at(c, 0, '.') || at(c, 0, ',')))
        return 0;
    n = run(c, 1, 12);
    if (n == 0)
        return 0;
    for (size_t i = 1; i <= n; i++, scale /= 10)
        us += (c->p[i] - '0') * scale;
    c->p += 1 + n;
    if (n == 3 && at(c, 0, '.') && run(c, 1, 4) == 3) {
        us += num(c, 1, 3);
        c->p += 4;
    }
    return us;
}

/* "HH:MM:SS" with an optional fraction and AM or PM; -1 and nothing used when it is none. */
static int64_t clock_us(struct cur *c)
{
    struct cur t = *c;
    size_t hd = run(&t, 0, 3);
    int h, m, s;
    int64_t us;

    if (hd < 1 || hd > 2 || !at(&t, hd, ':') || !at(&t, hd + 3, ':'))
        return -1;
    h = num(&t, 0, hd);
    m = num(&t, hd + 1, 2);
    s = num(&t, hd + 4, 2);
    if (h > 23 || m < 0 || m > 59 || s < 0 || s > 60)
        return -1;
    t.p += hd + 6;
    if (t.p < t.end && digit(*t.p))
        return -1;
    us = fraction(&t);
    if (at(&t, 0, ' ') && (at(&t, 1, 'A') || at(&t, 1, 'P')) && at(&t, 2, 'M') && h <= 12) {
        h = h % 12 + (t.p[1] == 'P' ? 12 : 0);
        t.p += 3;
    }
    *c = t;
    return ((h * 60 + m) * 60 + s) * US + us;
}

/* "Z", "+08:00", "+0800", " UTC", " +0000": true with minutes east. */
static bool zone(struct cur *c, int *minutes)
{
    struct cur z = *c;
    int h, m;
    bool colon;

    if (at(&z, 0, ' '))
        z.p++;
    if (at(&z, 0, 'Z') && z.p == c->p) {
        c->p++;
        *minutes = 0;
        return true;
    }
    if (z.end - z.p >= 3 && (memcmp(z.p, "UTC", 3) == 0 || memcmp(z.p, "GMT", 3) == 0)) {
        c->p = z.p + 3;
        *minutes = 0;
        return true;
    }
    if (!at(&z, 0, '+') && !at(&z, 0, '-'))
        return false;
    h = num(&z, 1, 2);
    colon = at(&z, 3, ':');
    m = num(&z, colon ? 4 : 3, 2);
    if (h < 0 || h > 14 || m < 0 || m > 59 || run(&z, colon ? 4 : 3, 3) != 2)
        return false;
    *minutes = (h * 60 + m) * (*z.p == '-' ? -1 : 1);
    c->p = z.p + (colon ? 6 : 5);
    return true;
}

static void set(struct fl_time *out, const struct date *d, int64_t clock)
{
    *out = (struct fl_time){.us = clock, .kind = FL_TIME_DAY};
    if (d->year) {
        out->kind = FL_TIME_WALL;
        out->us += fl_days_from_civil(d->year, (unsigned)d->month, (unsigned)d->day) * DAY_US;
    } else if (d->month) {
        /* Counted in 1972, a leap year: February 29 keeps its place. */
        out->kind = FL_TIME_YEARLESS;
        out->us += (fl_days_from_civil(1972, (unsigned)d->month, (unsigned)d->day) - 730) * DAY_US;
    }
}

/* The time of day behind a date, and a zone where the date is full. */
static bool finish(struct cur *c, const struct date *d, struct fl_time *out)
{
    int64_t clock;
    int minutes;

    if (!date_ok(d))
        return false;
    clock = clock_us(c);
    if (clock < 0)
        return false;
    set(out, d, clock);
    if (d->year && zone(c, &minutes)) {
        out->zoned = true;
        out->zone_min = (int16_t)minutes;
        out->us -= minutes * 60 * US;
    }
    return true;
}

/* 1-12 for "Jan".."Dec" at p, else 0. */
static int month_name(const struct cur *c, size_t off)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    if ((size_t)(c->end - c->p) < off + 3)
        return 0;
    for (int i = 0; i < 12; i++)
        if (memcmp(c->p + off, names + (ptrdiff_t)i * 3, 3) == 0)
            return i + 1;
    return 0;
}

static bool weekday(const struct cur *c)
{
    static const char names[] = "MonTueWedThuFriSatSun";

    if (c->end - c->p < 4 || c->p[3] != ' ')
        return false;
    for (int i = 0; i < 7; i++)
        if (memcmp(c->p, names + (ptrdiff_t)i * 3, 3) == 0)
            return true;
    return false;
}

/* "Mar  1 02:03:04[.5]", with "Sun " before and " 2026" or " UTC 2026" behind. */
static bool month_first(struct cur *c, struct fl_time *out)
{
    struct date d = {0};
    struct cur t = *c, y;
    size_t n;
    int64_t clock;
    int minutes = 0;
    bool zoned;

    if (weekday(&t))
        t.p += 4;
    d.month = month_name(&t, 0);
    if (!d.month || !at(&t, 3, ' '))
        return false;
    t.p += 4;
    if (at(&t, 0, ' '))
        t.p++;
    n = run(&t, 0, 3);
    if (n < 1 || n > 2 || !at(&t, n, ' '))
        return false;
    d.day = num(&t, 0, n);
    t.p += n + 1;
    clock = clock_us(&t);
    if (clock < 0 || !date_ok(&d))
        return false;
    y = t;
    zoned = zone(&y, &minutes);
    if (at(&y, 0, ' ') && run(&y, 1, 5) == 4) {
        int year = num(&y, 1, 4);
        /* The four digits may as well be the first word of a message: a year is 19xx to 21xx. */
        if (year >= 1970 && year <= 2199) {
            d.year = year;
            t.p = y.p + 5;
        }
    }
    set(out, &d, clock);
    if (d.year && zoned) {
        out->zoned = true;
        out->zone_min = (int16_t)minutes;
        out->us -= minutes * 60 * US;
    }
    *c = t;
    return true;
}

/* "2026-03-01T02:03:04", also with blank, '_' or '-' between, '/' in the date; a lone date. */
static bool year_first(struct cur *c, struct fl_time *out)
{
    struct date d = {num(c, 0, 4), num(c, 5, 2), num(c, 8, 2)};
    struct cur t = *c;

    if (d.year < 1970 || c->p[4] != c->p[7] || d.month < 0 || d.day < 0)
        return false;
    if (t.end - t.p == 10 && date_ok(&d)) {
        set(out, &d, 0);
        out->kind = FL_TIME_WALL;
        c->p += 10;
        return true;
    }
    if (!(at(&t, 10, ' ') || at(&t, 10, 'T') || at(&t, 10, '-') || at(&t, 10, '_')))
        return false;
    t.p += 11;
    if (!finish(&t, &d, out))
        return false;
    *c = t;
    return true;
}

/* "03/01/2026 02:03:04", "03/01 02:03:04", "26/03/01 ..", "03/01/26 ..", "03-01 02:03:04". */
static bool two_first(struct cur *c, struct fl_time *out)
{
    int a = num(c, 0, 2), b = num(c, 3, 2), y;
    struct date d = {0, a, b};
    struct cur t = *c;

    if (a < 0 || b < 0)
        return false;
    t.p += 5;
    if (at(&t, 0, c->p[2]) && c->p[2] == '/') {
        size_t n = run(&t, 1, 5);
        y = num(&t, 1, n);
        if (n == 4)
            d.year = y;
        else if (n == 2 && a > 12) /* log4j: year first */
            d = (struct date){2000 + a, b, y};
        else if (n == 2) /* rich: month first */
            d.year = 2000 + y;
        else
            return false;
        t.p += 1 + n;
    }
    if (at(&t, 0, ',') && d.year)
        t.p++;
    if (!at(&t, 0, ' '))
        return false;
    t.p++;
    if (!finish(&t, &d, out))
        return false;
    *c = t;
    return true;
}

/* "01/Mar/2026:02:03:04 +0000" */
static bool web_server(struct cur *c, struct fl_time *out)
{
    struct date d = {num(c, 7, 4), month_name(c, 3), num(c, 0, 2)};
    struct cur t = *c;

    if (!d.month || !at(c, 6, '/') || !(at(c, 11, ':') || at(c, 11, ' ')))
        return false;
    t.p += 12;
    if (!finish(&t, &d, out))
        return false;
    *c = t;
    return true;
}

/* glog: "0301 02:03:04.123456", "301 ..." (c10 does not pad the month), "20260301 ...". */
static bool packed(struct cur *c, size_t n, struct fl_time *out)
{
    struct date d = {0};
    struct cur t = *c;
    const char *before;

    if (n == 8)
        d.year = num(c, 0, 4);
    d.month = num(c, n == 8 ? 4 : 0, n == 3 ? 1 : 2);
    d.day = num(c, n - 2, 2);
    t.p += n + 1;
    before = t.p + 8;
    /* Without a fraction "301 02:03:04" is too little to be a date. */
    if (!finish(&t, &d, out) || (n != 8 && t.p <= before))
        return false;
    *c = t;
    return true;
}

/* "12345.678901" since boot, "1717589999.123456" since 1970. */
static bool seconds(struct cur *c, size_t n, struct fl_time *out)
{
    size_t f = run(c, n + 1, 10);
    int64_t s = 0;
    struct cur t = *c;

    if (!at(c, n, '.') || f == 0 || (n < 10 && f != 6))
        return false;
    for (size_t i = 0; i < n; i++)
        s = s * 10 + (c->p[i] - '0');
    t.p += n;
    *out = (struct fl_time){.kind = FL_TIME_BOOT};
    out->us = s * US + fraction(&t);
    if (n == 10) {
        out->kind = FL_TIME_WALL;
        out->zoned = true;
    }
    *c = t;
    return true;
}

static bool digits_first(struct cur *c, struct fl_time *out)
{
    size_t n = run(c, 0, 11);
    char sep = c->p + n < c->end ? c->p[n] : 0;
    int64_t clock;

    switch (sep) {
    case '-':
    case '/':
        if (n == 4)
            return at(c, 7, sep) && year_first(c, out);
        if (n != 2)
            return false;
        return two_first(c, out) || (sep == '/' && web_server(c, out));
    case ':':
        clock = clock_us(c);
        if (clock < 0)
            return false;
        *out = (struct fl_time){.us = clock, .kind = FL_TIME_DAY};
        return true;
    case ' ':
        return (n == 3 || n == 4 || n == 8) && packed(c, n, out);
    case '.':
        return n <= 10 && seconds(c, n, out);
    default:
        return false;
    }
}

size_t fl_time_parse(fl_str s, struct fl_time *out)
{
    struct cur c = {s.p, s.p + s.n};
    bool ok;

    if (s.n < 7)
        return 0;
    ok = digit(*s.p) ? digits_first(&c, out) : month_first(&c, out);
    return ok ? (size_t)(c.p - s.p) : 0;
}

/* ".5", ".123", ".000001": as many digits as are needed of 3 or 6, none when whole. */
static void print_fraction(int64_t us, char out[8])
{
    if (us == 0)
        out[0] = 0;
    else if (us % 1000 == 0)
        snprintf(out, 8, ".%03u", (unsigned)(us / 1000) % 1000u);
    else
        snprintf(out, 8, ".%06u", (unsigned)us % 1000000u);
}

void fl_time_print(const struct fl_time *t, char out[40])
{
    int64_t us = fl_time_wall(t);
    int64_t days = (us >= 0 ? us : us - DAY_US + 1) / DAY_US;
    int64_t rest = us - days * DAY_US;
    unsigned s = (unsigned)(rest / US), zone_abs;
    int y, m, d, n;
    char frac[8], zone_text[8] = "";

    out[0] = 0;
    if (t->kind == FL_TIME_NONE)
        return;
    print_fraction(rest % US, frac);
    if (t->kind == FL_TIME_BOOT) {
        snprintf(out, 40, "PT%lld%sS", (long long)(t->us / US), frac);
        return;
    }
    if (t->zoned && t->zone_min == 0)
        snprintf(zone_text, sizeof(zone_text), "Z");
    else if (t->zoned) {
        zone_abs = (unsigned)(t->zone_min < 0 ? -t->zone_min : t->zone_min) % 6000u;
        snprintf(zone_text, sizeof(zone_text), "%c%02u:%02u", t->zone_min < 0 ? '-' : '+',
                 zone_abs / 60, zone_abs % 60);
    }
    civil_from_days(days + (t->kind == FL_TIME_YEARLESS ? 730 : 0), &y, &m, &d);
    if (t->kind == FL_TIME_WALL)
        n = snprintf(out, 40, "%04d-%02d-%02dT%02u:%02u:%02u%s%s", y, m, d, s / 3600, s / 60 % 60,
                     s % 60, frac, zone_text);
    else if (t->kind == FL_TIME_YEARLESS)
        n = snprintf(out, 40, "--%02d-%02dT%02u:%02u:%02u%s", m, d, s / 3600, s / 60 % 60, s % 60,
                     frac);
    else
        n = snprintf(out, 40, "%02u:%02u:%02u%s", s / 3600, s / 60 % 60, s % 60, frac);
    if (n < 0 || n >= 40)
        out[0] = 0;
}
