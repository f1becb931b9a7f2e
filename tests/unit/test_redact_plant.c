/*
 * Secrets planted in real logs: none may leave.
 *
 * Shapes are templates that a seeded generator fills: {m34} is 34 letters and digits, x hexadecimal
 * digits, u capitals and digits, d digits, t letters and digits with a '-' and a '_' in the middle,
 * b base64, l small letters and digits. Those without a name of their own are planted wherever a
 * text can be, the others where their name stands in front. Each plant goes into a page of some
 * case's log, and of what comes out no piece of twelve bytes of the secret may be found.
 */
#include "redact_walk.h"

#define PIECE 12

struct shape {
    const char *name, *text;
    const char *key; /* NULL: the shape shows itself */
};

static const struct shape shapes[] = {
    {"OpenAI", "sk-{m48}", NULL},
    {"OpenAI project", "sk-proj-{t74}", NULL},
    {"Anthropic", "sk-ant-api03-{t93}", NULL},
    {"OpenRouter", "sk-or-v1-{x64}", NULL},
    {"DeepSeek", "sk-{x32}", NULL},
    {"Hugging Face", "hf_{m34}", NULL},
    {"Hugging Face organisation", "api_org_{m34}", NULL},
    {"GitHub classic", "ghp_{m36}", NULL},
    {"GitHub app", "ghs_{m36}", NULL},
    {"GitHub OAuth", "gho_{m36}", NULL},
    {"GitHub fine-grained", "github_pat_{m22}_{m59}", NULL},
    {"GitLab", "glpat-{t20}", NULL},
    {"GitLab deploy", "gldt-{t20}", NULL},
    {"AWS access key", "AKIA{u16}", NULL},
    {"AWS temporary key", "ASIA{u16}", NULL},
    {"AWS session", "IQoJb3JpZ2luX2Vj{b300}", NULL},
    {"Google API key", "AIza{t35}", NULL},
    {"Google OAuth", "ya29.{t80}", NULL},
    {"Google client secret", "GOCSPX-{t28}", NULL},
    {"Azure storage", "{b86}==", NULL},
    {"Azure AD", "{m3}8Q~{m34}", NULL},
    {"Slack bot", "xoxb-{d12}-{d12}-{m24}", NULL},
    {"Slack app", "xapp-1-A{u9}-{d12}-{x64}", NULL},
    {"Discord", "{m24}.{m6}.{m38}", NULL},
    {"Telegram", "{d10}:AA{t33}", NULL},
    {"Stripe", "sk_live_{m24}", NULL},
    {"Stripe webhook", "whsec_{m32}", NULL},
    {"Twilio", "SK{x32}", NULL},
    {"SendGrid", "SG.{t22}.{t43}", NULL},
    {"Mailgun", "key-{x32}", NULL},
    {"npm", "npm_{m36}", NULL},
    {"PyPI", "pypi-AgEIcHlwaS5vcmc{t120}", NULL},
    {"Docker Hub", "dckr_pat_{t27}", NULL},
    {"DigitalOcean", "dop_v1_{x64}", NULL},
    {"Databricks", "dapi{x32}", NULL},
    {"Weights & Biases", "wandb_v1_{t60}", NULL},
    {"Neptune", "eyJhcGlfYWRkcmVzcyI6{m120}==", NULL},
    {"Kaggle token", "KGAT_{x32}", NULL},
    {"NGC", "nvapi-{t64}", NULL},
    {"Replicate", "r8_{m37}", NULL},
    {"Together", "tgp_v1_{t43}", NULL},
    {"Groq", "gsk_{m52}", NULL},
    {"xAI", "xai-{m80}", NULL},
    {"Perplexity", "pplx-{m48}", NULL},
    {"LangSmith", "lsv2_pt_{x32}_{x10}", NULL},
    {"Volcengine", "AKLT{m43}", NULL},
    {"Aliyun", "LTAI5t{m18}", NULL},
    {"Tencent", "AKID{m32}", NULL},
    {"JWT", "eyJhbGciOiJIUzI1NiJ9.eyJ{m60}.{t43}", NULL},
    {"Vault", "hvs.{t90}", NULL},
    {"Grafana", "glsa_{m32}_{x8}", NULL},
    {"Atlassian", "ATATT3xFfGF0{t160}", NULL},
    {"AWS secret", "{b40}", "aws_secret_access_key"},
    {"W&B", "{x40}", "wandb_api_key"},
    {"Comet", "{m25}", "comet_api_key"},
    {"MLflow", "{l16}", "mlflow_tracking_password"},
    {"MLflow token", "{m30}", "mlflow_tracking_token"},
    {"ClearML", "{m50}", "clearml_api_secret_key"},
    {"Kaggle", "{x32}", "kaggle_key"},
    {"NGC legacy", "{m84}", "ngc_api_key"},
    {"Cohere", "{m40}", "cohere_api_key"},
    {"Mistral", "{m32}", "mistral_api_key"},
    {"Aliyun secret", "{m30}", "alibaba_cloud_access_key_secret"},
    {"Tencent secret", "{m32}", "tencentcloud_secret_key"},
    {"Volcengine secret", "{m60}==", "volc_secretkey"},
    {"database", "{l14}", "db_password"},
    {"PostgreSQL", "{m16}", "pgpassword"},
    {"client secret", "{t40}", "client_secret"},
    {"UUID token", "{x8}-{x4}-{x4}-{x4}-{x12}", "auth_token"},
    {"session", "{m40}", "aws_session_token"},
    {"registry", "{m24}", "registry_password"},
};

/* %s the secret, %k its name, %K in capitals, %f as a flag, %c in camel case. */
static const char *const named[] = {
    "export %K=%s",
    "%K=%s python train.py",
    "%k: %s",
    "%k = \"%s\"",
    "  %k: '%s'",
    "{\"%k\": \"%s\", \"lr\": 0.1}",
    "{'%k': '%s', 'lr': 0.1}",
    "{\\\"%k\\\": \\\"%s\\\"}",
    "{\"log\": \"config {\\\\\\\"%k\\\\\\\": \\\\\\\"%s\\\\\\\"}\"}",
    "python train.py --%f %s --lr 1e-5",
    "python train.py --%f=%s --lr 1e-5",
    "['train.py', '--%f', '%s', '--lr', '1e-5']",
    "Namespace(lr=0.1, %k='%s', seed=1)",
    "environ({'%K': '%s', 'LANG': 'C'})",
    "- name: %K\n  value: %s",
    "{\"name\": \"%K\", \"value\": \"%s\"}",
    "https://api.example.org/v1?%k=%s&step=1",
    "docker run -e %K=%s image",
    "\x1b[32m%K\x1b[0m=\x1b[33m%s\x1b[0m done",
    "%c: %s",
    "\"%c\": \"%s\"",
    "declare -x %K=\"%s\"",
    "[rank3]: ValueError: bad %k=%s, giving up",
    "Environment=%K=%s",
    "os.environ[\"%K\"] = \"%s\"",
    "setenv(\"%K\", \"%s\")",
    "<%k>%s</%k>",
    "<name>%k</name>\n<value>%s</value>",
    "{\"env\": {\"%K\": \"%s\"}}",
    "2026-03-01 10:00:00,123 INFO config.py:12 %k=%s",
    "\t%K: %s\r",
    "%k := '%s'",
    "| %k | %s |",
};
static const char *const bare[] = {
    "loaded %s for the run",
    "Authorization: Bearer %s",
    "curl -H 'Authorization: Bearer %s' http://localhost",
    "(%s)",
    "<%s>",
    "[%s]",
    "\"%s\",",
    "https://oauth2:%s@github.com/a/b.git",
    "fatal: key '%s' was refused",
    "x=%s;y=1",
    "[rank0]: PermissionError: %s: denied",
    "\x1b[31m%s\x1b[0m",
    "a,%s,b",
    "%s",
};

static uint64_t seed = 20260301;

static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void fill(const char *text, fl_buf *out)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fl_buf_clear(out);
    for (; *text; text++) {
        char set;
        int n;
        if (*text != '{') {
            fl_buf_addc(out, *text);
            continue;
        }
        set = text[1];
        n = atoi(text + 2);
        text = strchr(text, '}');
        for (int i = 0; i < n; i++) {
            char c = set == 'x'   ? "0123456789abcdef"[dice(16)]
                     : set == 'd' ? all[52 + dice(10)]
                     : set == 'u' ? all[dice(36) < 26 ? dice(26) : 52 + dice(10)]
                     : set == 'l' ? all[26 + dice(36)]
                     : set == 'b' ? all[dice(64)]
                                  : all[dice(62)];
            if (set == 't' && (i == n / 2 || i == n / 3))
                c = i == n / 2 ? '-' : '_';
            fl_buf_addc(out, c);
        }
    }
}

static void add_name(const char *key, char how, fl_buf *out)
{
    bool up = false;

    for (; *key; key++) {
        char c = *key;
        if (how == 'K' && c >= 'a' && c <= 'z')
            c = (char)(c - 32);
        else if (how == 'f' && c == '_')
            c = '-';
        else if (how == 'c' && up && c >= 'a' && c <= 'z')
            c = (char)(c - 32);
        up = c == '_';
        if (!(how == 'c' && c == '_'))
            fl_buf_addc(out, c);
    }
}

/* `split`: an ANSI code stands in the middle of the secret. */
static void plant(const char *context, const char *key, fl_str secret, bool split, fl_buf *out)
{
    for (; *context; context++) {
        if (*context != '%') {
            fl_buf_addc(out, *context);
        } else if (*++context == 's') {
            fl_buf_add(out, fl_str_sub(secret, 0, split ? secret.n / 2 : secret.n));
            if (split) {
                fl_buf_addz(out, "\x1b[1;31m");
                fl_buf_add(out, fl_str_from(secret, secret.n / 2));
            }
        } else {
            add_name(key, *context, out);
        }
    }
}

struct pages {
    fl_buf text[64];
    size_t n, seen;
};

static void keep_page(void *ctx, const char *path, fl_str text)
{
    struct pages *p = ctx;

    (void)path;
    if (p->n >= 64 || p->seen++ % 5)
        return;
    text = fl_str_sub(text, 0, 4000);
    fl_buf_init(&p->text[p->n], 1 << 16);
    fl_buf_add(&p->text[p->n++], text);
}

struct count {
    size_t planted, leaked, lost;
};

static bool leaks(fl_str secret, fl_str out)
{
    size_t n = secret.n < PIECE ? secret.n : PIECE;

    for (size_t i = 0; i + n <= secret.n; i++)
        if (fl_str_has(out, fl_str_sub(secret, i, n)))
            return true;
    return false;
}

static void try_one(const struct pages *pages, const struct shape *sh, const char *context,
                    const char *key, bool split, struct count *c)
{
    fl_str page = fl_buf_str(&pages->text[c->planted % pages->n]);
    ptrdiff_t lf = fl_str_find_c(fl_str_from(page, page.n / 2), '\n');
    size_t at = lf < 0 ? 0 : page.n / 2 + (size_t)lf + 1;
    fl_buf secret, text, out, home;
    fl_redactor *r = NULL;
    fl_err err = {0};

    fl_buf_init(&secret, 4096);
    fl_buf_init(&text, 1 << 16);
    fl_buf_init(&out, 1 << 20);
    fl_buf_init(&home, 1 << 16);
    fill(sh->text, &secret);
    fl_buf_add(&text, fl_str_sub(page, 0, at));
    plant(context, key, fl_buf_str(&secret), split, &text);
    fl_buf_addc(&text, '\n');
    fl_buf_add(&text, fl_str_from(page, at));
    assert_int_equal(fl_redactor_new(NULL, &r, &err), 0);
    assert_int_equal(fl_redact(r, fl_buf_str(&text), &out, &err), 0);
    assert_int_equal(fl_restore(r, fl_buf_str(&out), &home, &err), 0);
    c->planted++;
    if (leaks(fl_buf_str(&secret), fl_buf_str(&out))) {
        c->leaked++;
        fprintf(stderr, "%s leaks in: %s (%s)%s\n", sh->name, context, secret.p,
                split ? ", split" : "");
    }
    if (!fl_str_eq(fl_buf_str(&home), fl_buf_str(&text))) {
        c->lost++;
        fprintf(stderr, "%s does not come back from: %s\n", sh->name, context);
    }
    fl_redactor_free(r);
    fl_buf_dispose(&secret);
    fl_buf_dispose(&text);
    fl_buf_dispose(&out);
    fl_buf_dispose(&home);
}

static void nothing_leaves(void **state)
{
    struct pages *pages = calloc(1, sizeof(*pages));
    struct count c = {0};
    size_t nshapes = sizeof(shapes) / sizeof(*shapes);

    (void)state;
    assert_non_null(pages);
    walk_folder(FL_SOURCE_DIR "/tests/cases", keep_page, pages);
    assert_true(pages->n > 50);
    for (size_t i = 0; i < nshapes; i++) {
        const char *key = shapes[i].key ? shapes[i].key : "service_api_key";
        for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
            for (int split = 0; split < 2; split++)
                try_one(pages, &shapes[i], named[k], key, split, &c);
        for (size_t k = 0; !shapes[i].key && k < sizeof(bare) / sizeof(*bare); k++)
            for (int split = 0; split < 2; split++)
                try_one(pages, &shapes[i], bare[k], key, split, &c);
    }
    printf("%zu secrets of %zu shapes planted, %zu leaked, %zu did not come back\n", c.planted,
           nshapes, c.leaked, c.lost);
    for (size_t i = 0; i < pages->n; i++)
        fl_buf_dispose(&pages->text[i]);
    free(pages);
    assert_true(nshapes >= 50 && c.planted >= 500);
    assert_int_equal(c.leaked, 0);
    assert_int_equal(c.lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_leaves)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
