# Installs missing Debian or Ubuntu packages; read by ./quickstart and ./check with "."
#
# A need is one line: KIND NAME PACKAGE[|PACKAGE...]. KIND is
#   cmd    NAME is a command that must be found
#   lib    NAME is a pkg-config module
#   test   NAME is a shell function that must succeed
# Packages are alternatives: the first one that apt knows is taken, since names differ between
# releases. Nothing is asked of apt, not even a look-up, when no need is open.

say() {
    printf '%s: %s\n' "$FL_ME" "$*" >&2
}

stop() {
    say "$1"
    shift
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 4
}

# A compiler is only there when it can make a program: gcc without libc6-dev cannot.
can_compile() {
    command -v cc >/dev/null 2>&1 &&
        printf 'int main(void){return 0;}\n' | cc -x c - -o /dev/null 2>/dev/null
}

open_need() {
    case $1 in
    cmd) ! command -v "$2" >/dev/null 2>&1 ;;
    lib) ! pkg-config --exists "$2" 2>/dev/null ;;
    test) ! "$2" >/dev/null 2>&1 ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

apt_knows() {
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: *[^( ]'
}

# Sets $packages from $alternatives, and $unknown to what apt has under no name.
choose_packages() {
    packages= unknown=
    for choice in $alternatives; do
        found=
        for p in $(printf '%s' "$choice" | tr '|' ' '); do
            if apt_knows "$p"; then
                found=$p
                break
            fi
        done
        if [ -n "$found" ]; then packages="$packages $found"; else unknown="$unknown $choice"; fi
    done
}

apt_update() {
    say "asking the package servers what there is (apt-get update)"
    as_root apt-get update -qq >>"$FL_LOG" 2>&1 || true
}

apt_install() {
    # shellcheck disable=SC2086
    as_root apt-get install -y -qq --no-install-recommends $packages >>"$FL_LOG" 2>&1
}

install_open() {
    first=$(printf '%s\n' $alternatives | sed 's/|.*//' | tr '\n' ' ')
    command -v apt-get >/dev/null 2>&1 ||
        stop "this machine has no apt-get, and these are missing:" "$first" \
            "Install what your system calls them, then run $FL_ME again."
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
        stop "packages are missing, and this is neither root nor a user with sudo." \
            "Ask someone who is root to run:" \
            "apt-get update && apt-get install -y --no-install-recommends $first" \
            "Then run $FL_ME again: it needs no rights once they are there."
    fi
    choose_packages
    updated=
    if [ -n "$unknown" ]; then
        apt_update
        updated=1
        choose_packages
    fi
    if [ -n "$unknown" ]; then
        grep -E '^(E|W|Err)' "$FL_LOG" | tail -n 3 | cut -c1-200 >&2 || true
        stop "apt knows no package for:$unknown" \
            "Is this machine online, and do its package sources name 'main' (Debian) or" \
            "'universe' (Ubuntu)? What apt said is at the end of $FL_LOG"
    fi
    say "installing:$packages"
    apt_install && return 0
    if [ -z "$updated" ]; then
        apt_update
        apt_install && return 0
    fi
    tail -n 8 "$FL_LOG" >&2
    stop "apt-get could not install the packages (its own words are above; all in $FL_LOG)." \
        "If it names a lock, wait for the other package manager and run $FL_ME again." \
        "If it could not reach a server, check the network or the proxy settings of apt." \
        "By hand: apt-get update && apt-get install -y --no-install-recommends$packages"
}

# install_needs "LINES"
install_needs() {
    alternatives=
    while read -r kind name choice; do
        [ -n "$kind" ] || continue
        if open_need "$kind" "$name"; then alternatives="$alternatives $choice"; fi
    done <<NEEDS
$1
NEEDS
    [ -z "$alternatives" ] && return 0
    say "missing here:$(printf ' %s' $alternatives | sed 's/|[^ ]*//g')"
    install_open
    still=
    while read -r kind name choice; do
        [ -n "$kind" ] || continue
        if open_need "$kind" "$name"; then still="$still $name"; fi
    done <<NEEDS
$1
NEEDS
    [ -z "$still" ] || stop "installed, but still not found:$still" \
        "Another copy earlier in PATH or PKG_CONFIG_PATH may hide it; see $FL_LOG"
}

# What it takes to build the program.
FL_BUILD_NEEDS='
test can_compile gcc
test can_compile libc6-dev
cmd c++ g++
cmd cmake cmake
cmd ninja ninja-build
cmd pkg-config pkg-config|pkgconf
lib libhs libvectorscan-dev|libhyperscan-dev
lib libpcre2-8 libpcre2-dev
lib libcjson libcjson-dev
lib yaml-0.1 libyaml-dev
lib libxxhash libxxhash-dev
lib sqlite3 libsqlite3-dev
lib zlib zlib1g-dev
lib libzstd libzstd-dev
lib liblzma liblzma-dev
lib sentencepiece libsentencepiece-dev
lib libedit libedit-dev
lib libcurl libcurl4-openssl-dev|libcurl4-gnutls-dev
'

# FAISS, for the index of past incidents. Faultline builds and works without, so what cannot be had
# here is said and stops nothing.
has_faiss_headers() {
    test -e "${FL_FAISS_INCLUDE:-/usr/include}/faiss/c_api/Index_c.h"
}
FL_FAISS_NEEDS='
cmd c++ g++
test has_faiss_headers libfaiss-dev
lib openblas libopenblas-openmp-dev|libopenblas-dev
'
# want_faiss ROOT: in a subshell, since what is missing ends it.
want_faiss() {
    (install_needs "$FL_FAISS_NEEDS" && "$1/.ci/faiss.sh") ||
        say "going on without FAISS: past incidents are compared one by one"
}
