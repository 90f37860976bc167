#!/bin/sh
# Tests that need no engine.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
[ ! -f bin/programs.ts ] || node bin/programs.ts
files=$(find test -name '*.test.ts' ! -name '*.engine.test.ts' | sort)
# Without files node would look for tests by itself, and find the reporter.
[ -n "$files" ] || { printf '\nno test was run\n' && exit 1; }
exec node --test --test-concurrency="$(getconf _NPROCESSORS_ONLN)" --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=./test/house/closing-reporter.ts --test-reporter-destination=stdout \
  $files
