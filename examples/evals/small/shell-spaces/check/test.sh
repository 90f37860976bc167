#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
same "$(sh count.sh "$work")" 0
printf 'a\nb\n' > "$work/two lines.txt"
printf 'c\n' > "$work/one.txt"
printf 'd\n' > "$work/other.md"
same "$(sh count.sh "$work")" 3
mkdir "$work/in here"
printf 'a\n' > "$work/in here/*.txt"
same "$(sh count.sh "$work/in here")" 1
