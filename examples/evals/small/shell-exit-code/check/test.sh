#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
echo data > "$work/a"
same "$(sh backup.sh "$work/a" "$work/b")" copied
same "$(cat "$work/b")" data
code=0
said=$(sh backup.sh "$work/nothing" "$work/c" 2> /dev/null) || code=$?
same "$code" 1
same "$said" ""
code=0
mkdir "$work/full"
sh backup.sh "$work/a" "$work/none/d" > /dev/null 2>&1 || code=$?
same "$code" 1
same "$(ls "$work")" "$(printf 'a\nb\nfull')"
code=0
mkdir "$work/folder"
sh backup.sh "$work/folder" "$work/e" > /dev/null 2>&1 || code=$?
same "$code" 1
[ ! -e "$work/e.part" ] && [ ! -e "$work/e" ]
