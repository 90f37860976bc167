#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
same "$(sh greet.sh)" "HELLO, WORLD"
same "$(sh greet.sh Ann)" "HELLO, ANN"
