#!/bin/sh
# with_llm.sh SERVER "ARGUMENTS" COMMAND...: starts tests/fakes' llm_server with the arguments (one
# word, split at blanks), runs the command with FL_LLM_PORT and FL_LLM_URL set, ends the server and
# exits as the command did.
set -eu
program=$1 arguments=$2
shift 2
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
# shellcheck disable=SC2086
"$program" $arguments >"$work/port" </dev/null &
server=$!
n=0
until grep -q '^PORT' "$work/port"; do
    n=$((n + 1))
    if [ $n -gt 200 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "with_llm.sh: $program does not start" >&2
        exit 1
    fi
    sleep 0.05
done
FL_LLM_PORT=$(sed -n 's/^PORT //p' "$work/port")
FL_LLM_URL=http://127.0.0.1:$FL_LLM_PORT/v1
export FL_LLM_PORT FL_LLM_URL
status=0
"$@" || status=$?
exit $status
