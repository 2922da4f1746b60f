/* size_text.h: sizes as people write them on the command line and in the environment.
 *
 * Pure functions, any thread. Errors: 0 or -EINVAL (not a size), -ERANGE (does not fit 64 bits).
 * Header-only because the command line tool and the library both read the same words.
 */
#ifndef REMAT_TRACER_SIZE_TEXT_H
#define REMAT_TRACER_SIZE_TEXT_H

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* "1048576", "12G", "1.5GiB", "512 M" is not one (no spaces): bytes. K M G T and KiB MiB GiB TiB are binary, in either
 * case; fractions are allowed with a unit. */
static inline int size_text_bytes(const char *s, uint64_t *bytes)
{
    static const char units[] = "kmgt";
    if (*s < '0' || *s > '9')
        return -EINVAL;
    /* digits and one point only: strtod's hexadecimal, exponents and names are not sizes */
    size_t digits = strspn(s, "0123456789"), n = digits;
    if (s[n] == '.')
        n += 1 + strspn(s + n + 1, "0123456789");
    const char *suffix = s + n;
    int shift = 0;
    if (*suffix) {
        char low = (char)(*suffix | 0x20);
        const char *u = strchr(units, low);
        if (!u)
            return -EINVAL;
        shift = 10 * (int)(u - units + 1);
        suffix++;
        if (*suffix && strcmp(suffix, "iB") != 0 && strcmp(suffix, "ib") != 0)
            return -EINVAL;
    } else if (n != digits) {
        return -EINVAL;
    }
    errno = 0;
    if (n == digits) {
        unsigned long long whole = strtoull(s, NULL, 10);
        if (errno || whole > (UINT64_MAX >> shift))
            return -ERANGE;
        *bytes = (uint64_t)whole << shift;
        return 0;
    }
    double v = ldexp(strtod(s, NULL), shift);
    if (!(v < 18446744073709549568.0))
        return -ERANGE;
    *bytes = (uint64_t)v;
    return 0;
}

/* SIZE or PCT. Exactly one of *bytes and *pct is set above 0, the other is 0. "0", "0%" and above 100 % are -ERANGE. */
static inline int size_text_limit(const char *s, uint64_t *bytes, double *pct)
{
    *bytes = 0;
    *pct = 0;
    size_t len = strlen(s);
    if (len > 1 && s[len - 1] == '%') {
        size_t n = strspn(s, "0123456789");
        if (n == 0)
            return -EINVAL;
        if (s[n] == '.')
            n += 1 + strspn(s + n + 1, "0123456789");
        if (n != len - 1)
            return -EINVAL;
        double v = strtod(s, NULL);
        if (!(v > 0 && v <= 100))
            return -ERANGE;
        *pct = v;
        return 0;
    }
    int rc = size_text_bytes(s, bytes);
    if (rc == 0 && *bytes == 0)
        rc = -ERANGE;
    return rc;
}

#endif
