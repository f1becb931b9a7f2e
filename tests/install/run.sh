#!/bin/sh
# run.sh SOURCE BUILD CC: installs into a folder of its own, builds a small program against the
# installed library with nothing but pkg-config, and lets it and the installed `diagnose` name the
# cause of the sample. Nothing of the build or source tree may be needed for that.
set -eu
source=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
cp -r "$source/samples/gpu-lost" "$work/log"
cp "$source/tests/install/consumer.c" "$work/out/"
cmake --install "$build" --prefix "$work/usr" >"$work/install.txt" || {
    cat "$work/install.txt"
    exit 1
}

cd "$work/out"
PKG_CONFIG_PATH=$(dirname "$(find "$work/usr" -name faultline.pc)")
LD_LIBRARY_PATH=$(dirname "$(find "$work/usr" -name 'libfaultline.*' | head -n 1)")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Wextra -Werror consumer.c -o consumer $(pkg-config --cflags --libs faultline) ||
    "$cc" -std=c11 consumer.c -o consumer $(pkg-config --static --cflags --libs faultline)

unset FAULTLINE_DATA
expect() {
    if [ "$2" != "gpu.off_bus" ]; then
        echo "$1 named '$2', expected 'gpu.off_bus'; installed:"
        cat "$work/install.txt"
        exit 1
    fi
    echo "$1: $2"
}
# The program finds its rules beside itself; the library where it was configured to be installed,
# so a moved copy is told where.
expect "the installed program" "$(HOME=$work "$work/usr/bin/diagnose" --json --offline "$work/log" |
    sed -n 's/.*"cause" *: *{ *"id" *: *"\([a-z_.]*\)".*/\1/p' | head -n 1)"
data=$(dirname "$(find "$work/usr" -type d -path '*faultline/rules')")
FAULTLINE_DATA=$data
export FAULTLINE_DATA
expect "the program outside the tree" "$(HOME=$work ./consumer "$work/log")"
