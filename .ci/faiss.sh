#!/bin/sh
# .ci/faiss.sh [--again | --sources FOLDER]
#
# Builds FAISS's C functions. The distribution's libfaiss-dev has their headers but the library
# holds none of them, so they are compiled from the same version's source package into
# build/faiss-c-VERSION/libfaiss_c.a, which all presets share: half a minute, once. Where the system
# has a libfaiss_c nothing is done.
#
# The source package comes from where the installed one came from: copies of the machine's own
# sources, turned into deb-src, in a folder of this script's own, with lists and caches of its own.
# The apt set-up of the machine is read and not touched, and no root is needed. The archive's
# signatures are checked as always. --sources only prints what becomes of the sources in FOLDER (laid
# out as /etc/apt). FAULTLINE_FAISS_SOURCE names an unpacked source folder (with
# c_api in it) instead, for machines without a network.
#
# The exit status is 0 when the functions are there. Without them Faultline builds and works; it
# compares vectors one by one.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
include=${FL_FAISS_INCLUDE:-/usr/include}
log=$root/build/faiss.log

say() {
    printf 'faiss: %s\n' "$*" >&2
}

stop() {
    say "$1"
    exit 1
}

# One-line sources: `deb` becomes `deb-src`, options kept but for the architectures, which sources
# have none of; discs are left out. The other format: the field Types.
copy_sources() {
    mkdir -p "$2"
    n=0
    for file in "$1/sources.list" "$1"/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        n=$((n + 1))
        sed -n -e '/cdrom:/d' -e 's/^[[:space:]]*deb[[:space:]]\{1,\}/deb-src /' \
            -e '/^deb-src /{s/\(\[[^]]*\)arch=[^] ]* */\1/;s/\[ *\] *//;p;}' "$file" >"$2/$n.list"
    done
    for file in "$1"/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        n=$((n + 1))
        sed -e 's/^[Tt][Yy][Pp][Ee][Ss]:.*/Types: deb-src/' -e '/^[Aa]rchitectures:/d' "$file" \
            >"$2/$n.sources"
    done
    [ "$n" != 0 ] || stop "apt has no sources in $1"
}

if [ "${1-}" = --sources ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    copy_sources "${2:-/etc/apt}" "$work/sources"
    cat "$work"/sources/*
    exit 0
fi

[ -e "$include/faiss/c_api/Index_c.h" ] || stop "no $include/faiss/c_api: libfaiss-dev is not installed"
number() {
    sed -n "s/^#define FAISS_VERSION_$1 \([0-9]*\).*/\1/p" "$include/faiss/Index.h"
}
version=$(number MAJOR).$(number MINOR).$(number PATCH)
case $version in
*..* | .* | *.) stop "$include/faiss/Index.h does not say its version" ;;
esac
out=$root/build/faiss-c-$version
[ "${1-}" != --again ] || rm -rf "$out"
[ ! -e "$out/libfaiss_c.a" ] || exit 0
if printf 'int main(void){return 0;}\n' | cc -x c - -o /dev/null -lfaiss_c 2>/dev/null; then
    exit 0
fi
mkdir -p "$root/build"
work=$(mktemp -d "$root/build/faiss-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
true >"$log"

own_apt() {
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" \
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" \
        -o APT::Sandbox::User= -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::Languages=none \
        -o Acquire::IndexTargets::deb-src::DEP-11::DefaultEnabled=false "$@" >>"$log" 2>&1
}

fetch() {
    command -v apt-get >/dev/null 2>&1 ||
        stop "no apt-get here; give FAULTLINE_FAISS_SOURCE the source of FAISS $version"
    say "fetching the source of FAISS $version (1 MB; lists of packages: some 10 MB)"
    copy_sources /etc/apt "$work/sources"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    # A source that does not answer is no reason to stop: the package may come from another.
    own_apt update || true
    exact=$(dpkg-query -W -f '${source:Version}' libfaiss-dev 2>/dev/null || true)
    cd "$work"
    own_apt source --download-only --only-source ${exact:+"faiss=$exact"} || {
        own_apt source --download-only --only-source faiss || true
    }
    archive=
    for file in "$work"/faiss_"$version"[.+~-]*orig.tar.* "$work"/faiss_"$version"[.+~-]*.tar.*; do
        case $file in *.debian.tar.* | *.asc) continue ;; esac
        [ ! -f "$file" ] || archive=$file
        [ -z "$archive" ] || break
    done
    if [ -z "$archive" ]; then
        tail -n 3 "$log" | cut -c1-200 >&2
        stop "the source of FAISS $version was not to be had; is the network up? (all of it: $log)"
    fi
    mkdir "$work/faiss"
    tar -C "$work/faiss" --strip-components=1 -xf "$archive" >>"$log" 2>&1 ||
        stop "$archive cannot be unpacked; see $log"
}

source=${FAULTLINE_FAISS_SOURCE:-$work/faiss}
[ -n "${FAULTLINE_FAISS_SOURCE-}" ] || fetch
[ -e "$source/c_api/Index_c.cpp" ] || stop "$source has no c_api/Index_c.cpp"

# The installed headers, not those of the source: they carry the distribution's patches. NDEBUG
# keeps FAISS from printing each error that it also returns.
say "compiling the C functions of FAISS $version (half a minute, once)"
cxx=${CXX:-c++}
if [ "$include" != /usr/include ]; then cxx="$cxx -isystem $include"; fi
mkdir "$work/objects"
cd "$source/c_api"
for file in ./*.cpp impl/*.cpp utils/*.cpp; do
    printf '%s\n' "$file"
done | FL_CXX=$cxx FL_OUT=$work/objects \
    xargs -P "$(nproc 2>/dev/null || echo 2)" -I '{}' sh -c '
    exec $FL_CXX -std=c++17 -O2 -fPIC -DNDEBUG -fopenmp -fvisibility=hidden -I. \
        -c "$1" -o "$FL_OUT/$(basename "$1" .cpp).o"' sh '{}' >>"$log" 2>&1 || {
    grep -m 3 error "$log" | cut -c1-200 >&2 || true
    stop "the C functions of FAISS do not compile; all of it: $log"
}
ar rcs "$work/objects/libfaiss_c.a" "$work/objects"/*.o >>"$log" 2>&1 ||
    stop "the library cannot be made; see $log"
mkdir -p "$out"
mv "$work/objects/libfaiss_c.a" "$out/libfaiss_c.a"
say "done: $out/libfaiss_c.a"
