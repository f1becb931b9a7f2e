#!/bin/sh
# cli.sh PROGRAM
#
# The program where its surroundings are broken: stdout closed or full, a home that is missing, read
# only or full. An answer that cannot be written is an error and is told on stderr; a cache that
# cannot be written is not, and stdout then still holds nothing but the answer.
set -u
program=$1
work=$(mktemp -d)
mounted=
clean() {
    [ -z "$mounted" ] || umount "$work/small"
    chmod -R u+rwX "$work"
    rm -rf "$work"
}
trap clean EXIT
export HOME="$work" XDG_CACHE_HOME="${FL_CLI_CACHE:-$work/cache}"
mkdir -p "$XDG_CACHE_HOME"
log=$work/job.log
printf '[rank3]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n' >"$log"
failed=0
wrong() {
    echo "$1"
    sed 's/^/    /' "$work/err"
    failed=1
}

# status NAME GOT EXPECTED
status() {
    [ "$2" = "$3" ] || wrong "$1: exit status $2, expected $3"
}
told() {
    grep -q "$2" "$work/err" || wrong "$1: stderr does not say '$2'"
}
answered() {
    grep -q '"id":"fw.cuda_oom"' "$work/out" || wrong "$1: no answer on stdout"
    [ "$(wc -l <"$work/out")" = 1 ] || wrong "$1: stdout holds more than the answer"
}

for how in "" --json; do
    # shellcheck disable=SC2086
    "$program" $how "$log" 2>"$work/err" >&-
    status "closed stdout $how" $? 3
    told "closed stdout $how" stdout
    # shellcheck disable=SC2086
    "$program" $how "$log" 2>"$work/err" >/dev/full
    status "full stdout $how" $? 3
    told "full stdout $how" stdout
done
"$program" --help 2>"$work/err" >/dev/full
status "help into a full stdout" $? 3

# stderr closed, stdin closed.
"$program" --json "$log" 2>&- >"$work/out"
status "closed stderr" $? 0
answered "closed stderr"
"$program" --json "$log" 2>"$work/err" <&- >"$work/out"
status "closed stdin" $? 0
answered "closed stdin"

env -u HOME -u XDG_CACHE_HOME -u XDG_CONFIG_HOME "$program" --json "$log" >"$work/out" 2>"$work/err"
status "no HOME" $? 0
answered "no HOME"

HOME=/proc/1/nothing XDG_CACHE_HOME= "$program" --json "$log" >"$work/out" 2>"$work/err"
status "a HOME that cannot be made" $? 0
answered "a HOME that cannot be made"

# Root writes where the mode forbids it, so this one says more as an ordinary user.
mkdir "$work/home"
chmod 555 "$work/home"
HOME=$work/home XDG_CACHE_HOME= "$program" --json "$log" >"$work/out" 2>"$work/err"
status "read-only HOME" $? 0
answered "read-only HOME"

XDG_CACHE_HOME=/dev/full "$program" --json "$log" >"$work/out" 2>"$work/err"
status "cache is a device" $? 0
answered "cache is a device"

# A full disk: a small tmpfs where that can be mounted, else nothing is shown here
# (tests/fault/test_io.c limits the size of files instead).
mkdir "$work/small"
if mount -t tmpfs -o size=64k none "$work/small" 2>/dev/null; then
    mounted=1
    XDG_CACHE_HOME=$work/small "$program" --json "$log" >"$work/out" 2>"$work/err"
    status "full cache disk" $? 0
    answered "full cache disk"
    find "$work/small" -type f | grep -q . && wrong "a full disk keeps half a cache"
fi

"$program" --json "$work/none.log" >"$work/out" 2>"$work/err"
status "missing log" $? 3
[ -s "$work/out" ] && wrong "missing log: stdout is not empty"
exit $failed
