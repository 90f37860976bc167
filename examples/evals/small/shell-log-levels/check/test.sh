#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cat > "$work/log" << 'END'
10:00 INFO started
10:01 WARN no ERROR yet
10:02 ERROR disk full
10:03 INFO ERROR is gone
10:04 INFORMAL nothing
END
same "$(sh summary.sh "$work/log")" "$(printf 'ERROR 1\nWARN 1\nINFO 2')"
: > "$work/empty"
same "$(sh summary.sh "$work/empty")" "$(printf 'ERROR 0\nWARN 0\nINFO 0')"
