/*
 * Neighbours as JSON: an object of their own, and the array in a diagnosis, by one function.
 */
#include "base/alloc.h"
#include "diagnose/memory.h"

void fl_neighbours_put(fl_json *root, const struct fl_neighbour *v, size_t n)
{
    fl_json *a = fl_json_put_array(root, "neighbours");

    for (size_t i = 0; i < n; i++) {
        const struct fl_neighbour *x = &v[i];
        fl_json *o = fl_json_add_object(a), *m;
        fl_json_put_z(o, "incident", x->incident);
        fl_json_put_z(o, "cause", x->cause);
        fl_json_put_num(o, "score", x->score);
        fl_json_put_num(o, "similarity", x->similarity);
        fl_json_put_num(o, "words", x->words);
        fl_json_put_z(o, "title", x->title);
        fl_json_put_z(o, "explanation", x->explanation);
        fl_json_put_z(o, "fix", x->fix);
        fl_json_put_z(o, "source", x->source);
        fl_json_put_z(o, "origin", x->origin);
        fl_json_put_int(o, "seen", (int64_t)x->seen);
        m = fl_json_put_array(o, "matched");
        for (size_t k = 0; k < x->nmatched; k++) {
            fl_json *e = fl_json_add_object(m);
            fl_json_put_z(e, "file", x->matched[k].at.file);
            if (x->matched[k].at.file)
                fl_json_put_int(e, "line", (int64_t)x->matched[k].at.line);
            fl_json_put_z(e, "text", x->matched[k].text);
            fl_json_put_z(e, "incident_text", x->matched[k].incident_text);
            fl_json_put_num(e, "similarity", x->matched[k].similarity);
        }
    }
}

int fl_neighbours_json(const fl_neighbours *n, bool indented, char **out, fl_err *err)
{
    fl_json *root = fl_json_object();
    char *text;
    fl_buf b;
    int r;

    fl_buf_init(&b, 64u << 20);
    fl_json_put_z(root, "schema", "faultline.neighbours/1");
    fl_neighbours_put(root, fl_neighbours_get(n, 0), fl_neighbours_count(n));
    fl_json_put_z(root, "version", fl_version());
    r = fl_json_print(root, indented, &b, err);
    fl_json_free(root);
    text = r ? NULL : fl_buf_take(&b);
    fl_buf_dispose(&b);
    if (!r && !text)
        r = fl_fail_nomem(err);
    if (!r)
        *out = text;
    return r;
}
