/*
 * Finds and loads the shared object with FAISS in it.
 *
 * It is looked for where the program is and where the library was installed, never by a bare name:
 * the loader's search path is the user's, and what is found there need not be ours. A symbol that
 * carries the version of the table refuses an object of another build. It is never unloaded, since
 * the threads that FAISS starts do not end before the process does; loading it again costs nothing,
 * so no handle has to be remembered anywhere.
 */
#include "embed/index_file.h"

#include <dlfcn.h>

#include "base/file.h"
#include "base/alloc.h"

static const char *place(fl_arena *a, const char *self, int i)
{
    ptrdiff_t slash = self ? fl_str_rfind_c(fl_str_c(self), '/') : -1;
    int n = (int)slash;

    if (i == 3)
        return FL_INDEX_FULL_LIBDIR "/faultline/" FL_ENGINE_FILE;
    if (slash < 0)
        return NULL;
    if (i == 0)
        return fl_arena_f(a, "%.*s/%s", n, self, FL_ENGINE_FILE);
    if (i == 1) /* the tests of a build tree stand one folder below */
        return fl_arena_f(a, "%.*s/../%s", n, self, FL_ENGINE_FILE);
    return fl_arena_f(a, "%.*s/../%s/faultline/%s", n, self, FL_INDEX_LIBDIR, FL_ENGINE_FILE);
}

static int load(const char *path, const struct fl_index_engine **out, fl_err *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct fl_index_engine *e;
    const char *said;

    if (!object) {
        said = dlerror();
        return fl_fail(err, FL_EBACKEND,
                       "%s cannot be loaded (%s); without it similar incidents are searched one by "
                       "one",
                       path, said ? said : "no reason given");
    }
    e = dlsym(object, FL_ENGINE_SYMBOL);
    if (!e || e->abi != FL_ENGINE_ABI)
        return fl_fail(err, FL_EBACKEND, "%s is of another version of Faultline; install it again",
                       path);
    *out = e;
    return FL_OK;
}

int fl_index_engine_load(const struct fl_index_engine **out, fl_err *err)
{
    const char *self, *path;
    fl_arena a;
    int r = fl_fail(NULL, FL_EBACKEND, "not found");
    bool found = false;

    fl_arena_init(&a);
    self = fl_file_self(&a);
    for (int i = 0; i < 4 && !found; i++) {
        path = place(&a, self, i);
        found = path && fl_file_exists(path);
        if (found)
            r = load(path, out, err);
    }
    if (!found && a.failed)
        r = fl_fail_nomem(err);
    else if (!found)
        fl_fail(err, r,
                "%s is not beside the program: it was built without FAISS, and similar incidents "
                "are searched one by one",
                FL_ENGINE_FILE);
    fl_arena_dispose(&a);
    return r;
}

int fl_index_available(fl_err *err)
{
    const struct fl_index_engine *e;

    return fl_index_engine_load(&e, err);
}
