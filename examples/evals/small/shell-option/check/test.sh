#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
touch "$work/b" "$work/a" "$work/c"
same "$(sh list.sh "$work")" "$(printf 'a\nb\nc')"
same "$(sh list.sh -r "$work")" "$(printf 'c\nb\na')"
code=0
sh list.sh -x "$work" > "$work/out" 2> "$work/err" || code=$?
same "$code" 2
same "$(cat "$work/out")" ""
[ -s "$work/err" ]
