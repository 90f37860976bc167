#!/bin/sh
# Everything, from a fresh clone: set-up, checks, all tests. A set-up that fails is red even though the tests
# that need no engine still run; what could not run is listed with its reason.
set -u
cd "$(dirname "$0")/.." || exit 1

# A model may be on offer; a question would hold the tests up.
./start.sh --no-sidecars </dev/null
setup=$?
[ -x node_modules/.bin/node ] || [ -d node_modules ] || exit "$setup"
PATH=$PWD/node_modules/.bin:$PATH

sh test/check.sh || exit 1
files=$(find test -name '*.test.ts' | sort)
# Without files node would look for tests by itself, and find the reporter.
[ -n "$files" ] || { printf '\nno test was run\n' && exit 1; }
node --test --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=./test/house/closing-reporter.ts --test-reporter-destination=stdout \
  $files
tests=$?
[ "$setup" -eq 0 ] || printf '\nred: the set-up ended with %s (see above), so not everything could run\n' "$setup"
[ "$tests" -eq 0 ] || exit "$tests"
exit "$setup"
