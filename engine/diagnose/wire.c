/*
 * The way to the endpoints: the network, a recording of it, or a recording instead of it.
 *
 * A diagnosis, a conversation and a look at the endpoints all go the same way, so it is put
 * together in one place: libcurl, retries around it, and around both what is recorded. A replay has
 * neither, since it goes nowhere.
 */
#include "base/alloc.h"
#include "diagnose/ask.h"

int fl_wire_open(struct fl_wire *w, const char *record, const char *replay, fl_err *err)
{
    int r;

    *w = (struct fl_wire){.seed = fl_llm_seed(fl_http_world())};
    if (replay) {
        r = fl_llm_replay(replay, &w->recorder, &w->seed, err);
        if (!r)
            w->transport = fl_llm_recorder_transport(w->recorder);
        return r;
    }
    r = fl_http_client_new(fl_http_world(), &w->client, err);
    if (r)
        return r;
    w->retry = (struct fl_http_retry){.inner = fl_http_client_transport(w->client),
                                      .world = fl_http_world()};
    w->transport = fl_http_retry_transport(&w->retry);
    if (record) {
        r = fl_llm_record(record, w->seed, w->transport, &w->recorder, err);
        if (!r)
            w->transport = fl_llm_recorder_transport(w->recorder);
    }
    return r;
}

void fl_wire_close(struct fl_wire *w)
{
    fl_llm_recorder_free(w->recorder);
    fl_http_client_free(w->client);
    *w = (struct fl_wire){.client = NULL};
}

int fl_wire_without_keys(fl_arena *a, struct fl_llm_opts *o, fl_err *err)
{
    struct fl_llm_endpoint *v = fl_arena_alloc(a, o->nendpoints * sizeof(*v));

    if (!v)
        return fl_fail_nomem(err);
    for (size_t i = 0; i < o->nendpoints; i++) {
        v[i] = o->endpoints[i];
        v[i].api_key_file = v[i].api_key_env = NULL;
    }
    o->endpoints = v;
    return FL_OK;
}
