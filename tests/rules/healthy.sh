#!/bin/sh
# healthy.sh PROGRAM FOLDER: each log in FOLDER is one of a healthy job, and must be called so.
set -u
failed=0 seen=0
for log in "$2"/*.log; do
    seen=$((seen + 1))
    said=$("$1" --json --no-memory "$log" | sed 's/.*"outcome": *"\([a-z]*\)".*/\1/')
    case $said in
    healthy) ;;
    *)
        echo "$log: said to be $said"
        failed=1
        ;;
    esac
done
[ "$seen" -ge 10 ] || { echo "$2: only $seen logs"; exit 1; }
exit $failed
