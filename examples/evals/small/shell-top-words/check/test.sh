#!/bin/sh
# Run by: sh test.sh
set -eu
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot: %s\n' "$2" "$1" >&2; exit 1; }; }
same "$(printf 'b a c\na B a d\n' | sh top.sh)" "$(printf '3 a\n2 b\n1 c')"
same "$(printf 'The the, THE. cat cat dog\n' | sh top.sh)" "$(printf '3 the\n2 cat\n1 dog')"
same "$(printf '' | sh top.sh)" ""
