/*
 * All logs of tests/cases, one after another, for tests that must hold on each of them.
 */
#ifndef FL_TEST_REDACT_WALK_H
#define FL_TEST_REDACT_WALK_H
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "redact/redact.h"

typedef void (*walk_fn)(void *ctx, const char *path, fl_str text);

static inline size_t walk_folder(const char *folder, walk_fn fn, void *ctx)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    struct stat st;
    char path[600];
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        fl_buf text;
        fl_err err = {0};
        if (e->d_name[0] == '.' || strcmp(e->d_name, "label.json") == 0)
            continue;
        assert_true(snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path));
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            n += walk_folder(path, fn, ctx);
            continue;
        }
        fl_buf_init(&text, 1 << 26);
        if (fl_file_read(path, &text, &err))
            fail_msg("%s", err.msg);
        fn(ctx, path, fl_buf_str(&text));
        fl_buf_dispose(&text);
        n++;
    }
    closedir(d);
    return n;
}

#endif
