#!/bin/sh
# The gate: types, lint with the house rules, format, unused code. Nothing checked is red.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH

counted() { # name, number of files
  [ "${2:-0}" -gt 0 ] || { printf '%s checked 0 files\n' "$1" >&2 && exit 1; }
  printf '%-7s %s files\n' "$1" "$2"
}

files=$(tsc --listFilesOnly | grep -v /node_modules/ | wc -l)
tsc
counted tsc "$((files))"

oxlint --format=unix >/tmp/harness-lint.$$ 2>&1 || { cat /tmp/harness-lint.$$ && rm -f /tmp/harness-lint.$$ && exit 1; }
rm -f /tmp/harness-lint.$$
counted oxlint "$(oxlint --debug=files | grep -c '\.[jt]s$')"

oxfmt --check >/dev/null || { oxfmt --check || true; exit 1; }
counted oxfmt "$(git ls-files -co --exclude-standard '*.ts' '*.js' '*.json' '*.md' | wc -l)"

knip
counted knip "$(git ls-files -co --exclude-standard 'src/*.ts' 'test/*.ts' 'bench/*.ts' | wc -l)"
