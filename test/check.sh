#!/bin/sh
# The gate: types, lint with the house rules, format, unused code. Nothing checked is red.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH

counted() { # name, number of files
  if [ "${2:-0}" -gt 0 ]; then
    printf '%-7s %s files\n' "$1" "$2"
  else
    printf '%s checked 0 files\n' "$1" >&2
    exit 1
  fi
}

[ ! -f bin/programs.ts ] || node bin/programs.ts
files=$(tsc --listFiles) || {
  printf '%s\n' "$files" | grep -v '^/[^:]*$' >&2
  exit 1
}
counted tsc "$(printf '%s\n' "$files" | grep '^/' | grep -vc /node_modules/)"

oxlint
counted oxlint "$(oxlint --debug=files | grep -c '\.[jt]s$')"

format=$(oxfmt --check 2>&1) || {
  printf '%s\n' "$format" >&2
  exit 1
}
counted oxfmt "$(printf '%s\n' "$format" | sed -n 's/.* on \([0-9]*\) files.*/\1/p')"

knip
counted knip "$(find src bench bin test -name '*.ts' | wc -l)"
