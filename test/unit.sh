#!/bin/sh
# Tests that need no engine.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
exec node --test --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=./test/house/closing-reporter.ts --test-reporter-destination=stdout \
  $(find test -name '*.test.ts' ! -name '*.engine.test.ts' | sort)
