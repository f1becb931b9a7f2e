#!/bin/sh
# run.sh SOURCE BUILD CC CXX: every header of ours compiles alone, and twice in a row; the public
# one also as C99 and as C++.
set -u
source=$1 build=$2 cc=$3 cxx=$4
flags="-fsyntax-only -Wall -Wextra -Werror -pedantic -D_DEFAULT_SOURCE -D_FILE_OFFSET_BITS=64"
includes="-I$source/engine/include"
for room in "$build"/include/*/; do includes="$includes -I$room"; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 count=0

try() {
    what=$1
    shift
    count=$((count + 1))
    if ! "$@" >"$work/out" 2>&1; then
        echo "$what does not stand alone:"
        head -n 8 "$work/out"
        failed=$((failed + 1))
    fi
}

for header in "$source"/engine/*/*.h "$source"/embed/*.h; do
    [ -e "$header" ] || continue
    printf '#include "%s"\n#include "%s"\nextern int fl_not_empty;\n' "$header" "$header" >"$work/a.c"
    # shellcheck disable=SC2086
    try "${header#"$source"/}" "$cc" -std=c11 $flags $includes "$work/a.c"
done
public="$source/engine/include/faultline.h"
printf '#include "%s"\n#include "%s"\nextern int fl_not_empty;\n' "$public" "$public" >"$work/p.c"
cp "$work/p.c" "$work/p.cc"
# shellcheck disable=SC2086
try "faultline.h as C99" "$cc" -std=c99 $flags "$work/p.c"
# shellcheck disable=SC2086
try "faultline.h as C++" "$cxx" -std=c++11 $flags "$work/p.cc"
echo "$count tried, $failed failed"
[ "$failed" = 0 ] && [ "$count" -gt 2 ]
