#!/bin/sh
# run.sh PROGRAM CASES
#
# `diagnose rules test` over the shipped rules. The healthy cases (label `none`) are copied without
# their labels and given as quiet logs: stable rules must not fire there.
set -eu
program=$1
cases=$2
quiet=$(mktemp -d)
trap 'rm -rf "$quiet"' EXIT
n=0
for label in "$cases"/*/label.json; do
    grep -q '"cause": *"none"' "$label" || continue
    folder=$(dirname "$label")
    cp -r "$folder" "$quiet/"
    rm "$quiet/$(basename "$folder")/label.json"
    n=$((n + 1))
done
echo "$n healthy cases"
[ $n -gt 0 ]
"$program" rules test --quiet-logs "$quiet"
