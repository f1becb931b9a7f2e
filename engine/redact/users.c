/*
 * People: home folders, accounts, e-mail addresses.
 *
 * A path keeps everything but the user in it: where a file lies below a home folder is evidence,
 * whose home it is is not. Accounts that images and clouds give everybody (root, ubuntu, ray) stay.
 * A user seen in a home folder is known from then on in other paths (/data/bob/run); as a bare
 * word only when the name has a digit or a hyphen, or four letters that are no word of logs
 * (ordinary.c), because `trainer` and `ma` are people too.
 *
 * Below /scratch and the /u of a file system stand people and projects alike. A folder there is
 * taken for a person's unless it has a word that folders are called by, and what it shows counts
 * in paths alone: should it be a project, the model loses its name and nothing else.
 */
#include "redact/scan.h"

static const char nobody[] =
    "root\0ubuntu\0ray\0nobody\0daemon\0ec2-user\0jovyan\0slurm\0munge\0www-data\0centos\0rocky\0"
    "vscode\0runner\0user\0users\0me\0someone\0you\0username\0shared\0public\0all\0none\0null\0"
    "true\0false\0linuxbrew\0node\0nonroot\0appuser\0docker\0default\0system\0sshd\0dbus\0syslog\0"
    "postgres\0mysql\0redis\0nginx\0admin\0administrator\0anonymous\0guest\0unknown\0self\0str\0"
    "defaults\0ma-user\0opc\0azureuser\0sagemaker-user\0mambauser\0";

/* What may stand behind `user` in prose. */
static const char prose[] =
    "code\0space\0namespace\0process\0processes\0request\0requests\0confirmation\0interrupt\0exit\0"
    "signal\0data\0id\0input\0error\0errors\0defined\0provided\0mode\0level\0script\0program\0limit"
    "\0"
    "limits\0credentials\0can\0facing\0time\0memory\0function\0functions\0agent\0warning\0action\0"
    "and\0or\0is\0was\0has\0may\0should\0must\0will\0not\0with\0in\0on\0at\0to\0of\0for\0by\0from\0"
    "the\0"
    "a\0an\0this\0that\0if\0authentication\0command\0config\0configuration\0directory\0slice\0manag"
    "er\0"
    "sys\0nice\0usage\0kernel\0idle\0packages\0site\0install\0root\0";

static bool user_shape(const struct fl_scan *s, size_t a, size_t b)
{
    size_t letters = 0;

    for (size_t i = a; i < b; i++)
        letters += fl_alpha(s->p[i]) || (unsigned char)s->p[i] >= 0x80;
    return b > a && b - a <= 64 && letters > 0 && !fl_word_in(s->low + a, b - a, nobody);
}

static size_t user_end(const struct fl_scan *s, size_t i)
{
    size_t a = i;

    while (i < s->n && (fl_word(s->p[i]) || s->p[i] == '-' || s->p[i] == '.' || s->p[i] == '+' ||
                        (unsigned char)s->p[i] >= 0x80))
        i++;
    while (i > a && (fl_back(s->p, i, 1) == '.' || fl_back(s->p, i, 1) == '-'))
        i--;
    return i;
}

static void known_as(struct fl_scan *s, size_t a, size_t b, bool sure)
{
    bool odd = false;

    fl_scan_add(s, a, b, FL_REDACT_USER);
    for (size_t i = a; i < b; i++)
        odd |= fl_digit(s->p[i]) || s->p[i] == '-';
    if (b - a >= 3)
        fl_scan_learn(s, a, b, FL_REDACT_USER,
                      b - a < 4 || !(odd || (sure && !fl_ordinary(s->low + a, b - a))));
}

static void found(struct fl_scan *s, size_t a, size_t b)
{
    known_as(s, a, b, true);
}

/* rank3, worker12: owners of locks and locations, not people. */
static bool part(const struct fl_scan *s, size_t a, size_t b)
{
    size_t e = b;

    while (e > a && fl_digit(fl_back(s->p, e, 1)))
        e--;
    return e < b && fl_word_in(s->low + a, e - a,
                               "rank\0gpu\0worker\0thread\0pid\0process\0node\0task\0job\0"
                               "cuda\0stage\0");
}

void fl_user_value(struct fl_scan *s, size_t a, size_t b)
{
    size_t e = user_end(s, a);

    b = e < b ? e : b;
    if (!part(s, a, b) && b - a >= 2 && (s->p[b] != '(' || fl_digit(s->p[b + 1])) &&
        user_shape(s, a, b) && !fl_word_in(s->low + a, b - a, prose))
        found(s, a, b);
}

/* How many components stand before the one whose '/' is at `i`. */
static size_t depth(const struct fl_scan *s, size_t i)
{
    size_t n = 0, from = i;

    while (i > 0 && from - i < 256 &&
           (fl_word(fl_back(s->p, i, 1)) || memchr("/.-+@:", fl_back(s->p, i, 1), 6))) {
        i--;
        n += s->p[i] == '/';
    }
    return n + (i < from && s->p[i] != '/');
}

/* One of the words of a folder's name, [a, b), its digits and the s at its end set aside: a word
 * that folders are called by, or one that holds it. */
static bool folder_word(const struct fl_scan *s, size_t a, size_t b)
{
    static const char folders[] =
        "ck\0cks\0run\0exp\0env\0tmp\0out\0log\0src\0job\0bin\0lib\0app\0opt\0pub\0hub\0new\0old\0"
        "sft\0dpo\0ppo\0rlhf\0lm\0llm\0vlm\0vlm\0mt\0nlp\0ml\0ai\0cv\0tok\0vid\0img\0raw\0usr\0var"
        "\0etc\0"
        "dev\0sys\0hf\0tb\0ssd\0all\0mix\0res\0ops\0eng\0dl\0st\0proj\0prj\0acct\0ckpt\0corpora\0ve"
        "nv\0"
        "megatron\0bert\0gpt\0llama\0qwen\0team\0dept\0inst\0univ\0sif\0enroot\0spack\0easybuild\0"
        "pile\0parquet\0arrow\0lmdb\0wikitext\0spool\0lost\0appdata\0";
    static const fl_str inside[] = {
        {"data", 4},   {"ckpt", 4},    {"checkpoint", 10}, {"model", 5},
        {"corpus", 6}, {"token", 5},   {"cache", 5},       {"weight", 6},
        {"train", 5},  {"output", 6},  {"project", 7},     {"shared", 6},
        {"result", 6}, {"scratch", 7}, {"experiment", 10}, {"group", 5}};
    size_t e = b;

    while (e > a && fl_digit(fl_back(s->p, e, 1)))
        e--;
    for (size_t k = 0; k < sizeof(inside) / sizeof(*inside); k++)
        if (fl_str_has(fl_str_n(s->low + a, e - a), inside[k]))
            return true;
    if (e - a < 2 || fl_ordinary(s->low + a, e - a) || fl_word_in(s->low + a, e - a, folders))
        return !(e - a == 1 && s->low[a] == 'u' && b - e >= 3); /* u10231 */
    return s->low[e - 1] == 's' && fl_word_in(s->low + a, e - a - 1, folders);
}

/* May the folder [a, b) be a person's? */
static bool persons(const struct fl_scan *s, size_t a, size_t b)
{
    size_t from = a;

    if (b - a < 3 || b - a > 24 || !fl_alpha(s->p[a]) ||
        (s->p[b] != '/' && memchr(s->p + a, '.', b - a)))
        return false;
    for (size_t i = a; i <= b; i++) {
        if (i < b && s->p[i] == '_') /* glm_sft */
            return false;
        if (i < b && fl_alnum(s->p[i]))
            continue;
        if (i == from || folder_word(s, from, i))
            return false;
        from = i + 1;
    }
    return true;
}

/* /scratch/bob, /gpfs/u/bob: a folder behind the component [slash + 1, b). */
static void behind_scratch(struct fl_scan *s, size_t slash, size_t b)
{
    static const char systems[] = "/gpfs\0/lustre\0/lus\0/scratch\0/beegfs\0/nfs\0/fsx\0/pfs\0"
                                  "/weka\0/vast\0/work\0/global\0/mnt\0";
    size_t a = slash + 1, n = b - a, d = depth(s, slash), e, root = slash;

    while (n > 1 && fl_digit(s->low[a + n - 1]))
        n--;
    if (n == 1 && s->low[a] == 'u') {
        while (root > 0 && slash - root < 12 && fl_alnum(fl_back(s->p, root, 1)))
            root--;
        if (d != 1 || root == 0)
            return;
        root--;
        for (e = slash; e > root && fl_digit(fl_back(s->p, e, 1));)
            e--;
        if (!fl_word_in(s->low + root, e - root, systems))
            return;
    } else if (n != 7 || memcmp(s->low + a, "scratch", 7) != 0 || d > 3) {
        return;
    }
    e = user_end(s, b + 1);
    if (s->p[e] != '(' && s->p[e] != '=' && s->p[e] != '*' && user_shape(s, b + 1, e) &&
        persons(s, b + 1, e))
        known_as(s, b + 1, e, false);
}

/* A user behind the component [a, b) that ends before a '/' or '\'. */
static void behind_home(struct fl_scan *s, size_t slash, size_t b)
{
    size_t a = slash + 1, n = b - a, u = b + 1, e;
    const char *low = s->low + a;
    bool home = fl_word_in(low, n, "home\0homes\0nfshome\0lhome\0userhome\0") ||
                (n == 5 && memcmp(low, "home", 4) == 0 && fl_digit(low[4]));
    bool users = fl_word_in(low, n, "users\0user\0");

    while (s->p[b] == '\\' && s->p[u] == '\\') /* C:\\Users\\x in a repr */
        u++;
    if (!home && !users)
        return;
    if (s->p[b] == '/' && depth(s, slash) > (home ? 3 : 2))
        return;
    e = user_end(s, u);
    /* a file right below is no user */
    if (memchr(s->p + u, '.', e - u) && !fl_digit(s->p[u]) &&
        fl_word_in(s->low + e - (e - u > 3 ? 3 : e - u), e - u > 3 ? 3 : e - u,
                   ".py\0yml\0txt\0log\0"))
        return;
    if (users && (s->p[e] == '.' || s->p[e] == '(' || s->p[e] == '?' || s->p[e] == '='))
        return;
    if (user_shape(s, u, e))
        found(s, u, e);
}

static void slashes(struct fl_scan *s, size_t i)
{
    size_t b = i + 1;

    while (b < s->n && b - i < 12 && fl_alnum(s->p[b]))
        b++;
    if (b > i + 4 && s->p[b] == s->p[i])
        behind_home(s, i, b);
    if (b > i + 1 && s->p[b] == '/' && s->p[i] == '/')
        behind_scratch(s, i, b);
}

static void tilde(struct fl_scan *s, size_t i)
{
    size_t e = user_end(s, i + 1);
    char before = fl_back(s->p, i, 1);

    if (e > i + 2 && fl_alpha(s->p[i + 1]) && s->p[e] == '/' &&
        (fl_space(before) || fl_quote(before) || before == '=' || before == ':') &&
        user_shape(s, i + 1, e))
        found(s, i + 1, e);
}

/* 1207(bob) behind uid, euid, ruid, gid and groups, which has a list of them. */
static void numbered(struct fl_scan *s, size_t paren)
{
    size_t i = paren, e = user_end(s, paren + 1);
    fl_str word, head;

    if (s->p[e] != ')')
        return;
    while (i > 0 && fl_digit(fl_back(s->p, i, 1)))
        i--;
    if (i == paren || i == 0 || !memchr("= :,", fl_back(s->p, i, 1), 4))
        return;
    head = fl_scan_head(s, i - 1);
    word = head;
    while (word.n && fl_alpha(word.p[word.n - 1]))
        word.n--;
    word = fl_str_from(head, word.n);
    if (fl_word_in(word.p, word.n, "groups\0") || fl_back(s->p, i, 1) == ','
            ? !fl_str_has(fl_scan_head(s, i), FL_S("groups="))
            : !fl_word_in(word.p, word.n, "uid\0euid\0ruid\0suid\0fsuid\0gid\0egid\0rgid\0"))
        return;
    if (user_shape(s, paren + 1, e))
        found(s, paren + 1, e);
}

/* ssh bob@n12: the host follows, too. */
static bool behind_ssh(const struct fl_scan *s, size_t a)
{
    for (size_t i = a - fl_scan_head(s, a).n; i + 4 <= a; i++)
        if (!fl_word(fl_back(s->p, i, 1)) &&
            (memcmp(s->low + i, "ssh ", 4) == 0 || memcmp(s->low + i, "scp ", 4) == 0 ||
             memcmp(s->low + i, "sftp ", 5) == 0 || memcmp(s->low + i, "rsync ", 6) == 0))
            return true;
    return false;
}

static bool mail_char(char c)
{
    return fl_word(c) || c == '.' || c == '-' || c == '+' || c == '%';
}

/* Does [a, at) belong to a URL's login? urls.c has it then. */
static bool in_url(const struct fl_scan *s, size_t a)
{
    size_t from = a;

    while (a > 0 && from - a < 128 && !fl_space(fl_back(s->p, a, 1)) && fl_back(s->p, a, 1) != '/')
        a--;
    return a > 1 && fl_back(s->p, a, 1) == '/' && fl_back(s->p, a, 2) == '/';
}

static void at_sign(struct fl_scan *s, size_t at)
{
    size_t a = at, b = at + 1, dot = 0;

    while (a > 0 && at - a < 128 && mail_char(fl_back(s->p, a, 1)))
        a--;
    while (a < at && !fl_alnum(s->p[a]))
        a++;
    while (b < s->n && b - at < 256 && fl_namec(s->p[b])) {
        dot = s->p[b] == '.' && fl_alpha(s->p[b + 1]) ? b : dot;
        b++;
    }
    while (b > at + 1 && !fl_alnum(fl_back(s->p, b, 1)))
        b--;
    if (a == at || b == at + 1 || in_url(s, a))
        return;
    if (dot > at + 1 && dot + 2 < b && !fl_word(s->p[b]) && s->p[at + 1] != '.' &&
        !fl_word_in(s->low + a, at - a, "git\0") &&
        !fl_word_in(s->low + dot + 1, b - dot - 1,
                    "py\0so\0cc\0cpp\0json\0yaml\0yml\0txt\0log\0sock\0git\0service\0")) {
        bool alpha = true;
        for (size_t i = dot + 1; i < b; i++)
            alpha &= fl_alpha(s->p[i]) || s->p[i] == '-';
        if (alpha) {
            fl_scan_add(s, a, b, FL_REDACT_EMAIL);
            return;
        }
    }
    if (behind_ssh(s, a) || (s->p[b] == ':' && s->p[b + 1] == '~')) { /* bob@n12:~$ */
        if (user_shape(s, a, at))
            found(s, a, at);
        fl_host_value(s, at + 1, b, true);
    }
}

/* Whether what stands behind `user bob`, at `e`, is said of people. */
static bool said_of_people(const struct fl_scan *s, size_t e)
{
    static const char words[] = "has\0had\0exceeded\0exceeds\0is\0was\0not\0on\0from\0with\0does\0"
                                "cannot\0logged\0cancelled\0canceled\0owns\0over\0reached\0at\0";
    size_t b = e + 1;

    if (e + 5 < s->n && memcmp(s->low + e, " (uid", 5) == 0)
        return true;
    while (fl_alpha(s->p[b]))
        b++;
    return (s->p[e] == ':' && s->p[e + 1] == ' ') ||
           (s->p[e] == ' ' && fl_word_in(s->low + e + 1, b - e - 1, words));
}

/* `user bob` in prose: quoted, behind "for", "by", "as", "of", or before what is said of people. */
static void prose_user(struct fl_scan *s, size_t a)
{
    size_t b = a + 4, i = b, e, w;
    bool quoted, behind, maybe;
    fl_str word;

    if (fl_word(s->p[b]) || s->p[b] != ' ')
        return;
    i++;
    quoted = fl_quote(s->p[i]);
    i += quoted;
    e = user_end(s, i);
    for (w = a > 0 ? a - 1 : 0; w > 0 && a - w < 12 && fl_word(fl_back(s->p, w, 1));)
        w--;
    word = fl_str_n(s->low + w, w + 1 < a ? a - 1 - w : 0);
    behind = fl_blank(fl_back(s->p, a, 1)) && fl_word_in(word.p, word.n, "for\0by\0as\0of\0");
    maybe = fl_word_in(word.p, word.n, "invalid\0unknown\0") || said_of_people(s, e);
    if (quoted ? s->p[e] != fl_back(s->p, i, 1)
               : !behind && !(maybe && !fl_ordinary(s->low + i, e - i)))
        return;
    fl_user_value(s, i, e);
}

/* sshd's "Accepted publickey for bob from". */
static void logged_in(struct fl_scan *s, size_t a)
{
    size_t e = user_end(s, a + 4);

    if (memcmp(s->low + a, "for ", 4) != 0 || a < 10 || e + 6 > s->n ||
        memcmp(s->low + e, " from ", 6) != 0)
        return;
    if (memcmp(s->low + a - 10, "publickey ", 10) == 0 ||
        memcmp(s->low + a - 9, "password ", 9) == 0)
        fl_user_value(s, a + 4, e);
}

/* wandb's "logged in as: bob". */
static void logged_in_as(struct fl_scan *s, size_t a)
{
    static const fl_str words = {"logged in as", 12};
    size_t i = a + words.n;

    if (!fl_str_starts(fl_str_n(s->low + a, s->n - a), words))
        return;
    while (fl_blank(s->p[i]) || s->p[i] == ':' || fl_quote(s->p[i]))
        i++;
    fl_user_value(s, i, user_end(s, i));
}

void fl_scan_users(struct fl_scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        switch (s->p[i]) {
        case '/':
        case '\\':
            slashes(s, i);
            break;
        case '~':
            tilde(s, i);
            break;
        case '(':
            if (fl_digit(fl_back(s->p, i, 1)))
                numbered(s, i);
            break;
        case '@':
            at_sign(s, i);
            break;
        case 'f':
            if (fl_back(s->p, i, 1) == ' ' && i + 12 < s->n)
                logged_in(s, i);
            break;
        case 'l':
        case 'L':
            if (!fl_word(fl_back(s->p, i, 1)))
                logged_in_as(s, i);
            break;
        case 'u':
        case 'U':
            if (!fl_word(fl_back(s->p, i, 1)) && i + 5 < s->n && memcmp(s->low + i, "user", 4) == 0)
                prose_user(s, i);
            break;
        default:
            break;
        }
    }
}
