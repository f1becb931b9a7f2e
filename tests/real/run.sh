#!/bin/sh
# run.sh FOLDER TEST: fetches the real servers into FOLDER, starts them on loopback, and runs TEST
# with their addresses in the environment. Exit status 77: they cannot be had here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 test=$2
mkdir -p "$folder"
# One at a time, when several builds share the folder.
if [ -z "${FL_REAL_LOCKED:-}" ] && command -v flock >/dev/null; then
    FL_REAL_LOCKED=1 exec flock "$folder/lock" "$0" "$@"
fi
"$here/venv.sh" "$folder" || exit $?
python=$folder/venv/bin/python
work=$(mktemp -d)
mkfifo "$work/llm.in" "$work/embed.in"
llm= embed=
finish() {
    exec 8>&- 9>&- # the servers' stdin: they end with it
    for pid in $llm $embed; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

"$python" "$here/serve.py" llm real-key-0123456789 4096 <"$work/llm.in" >"$work/llm" \
    2>"$work/llm.log" &
llm=$!
exec 8>"$work/llm.in"
"$python" "$here/serve.py" embed <"$work/embed.in" >"$work/embed" 2>"$work/embed.log" 8>&- &
embed=$!
exec 9>"$work/embed.in"

port_of() {
    n=0
    while ! grep -q '^PORT' "$work/$1"; do
        n=$((n + 1))
        if [ $n -gt 600 ] || ! kill -0 "$2" 2>/dev/null; then
            echo "the $1 server did not start:" >&2
            tail -n 5 "$work/$1.log" >&2
            exit 1
        fi
        sleep 0.25
    done
    sed -n 's/^PORT //p' "$work/$1"
}
llm_port=$(port_of llm "$llm")
embed_port=$(port_of embed "$embed")
FL_REAL_LLM="http://127.0.0.1:$llm_port/v1" FL_REAL_EMBED="http://127.0.0.1:$embed_port/v1" \
    "$test" 8>&- 9>&-
