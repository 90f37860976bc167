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
# Those that need no engine side by side; boxes would take each other's time.
listed() { find test -name '*.test.ts' "$@" | sort; }
run() { # files, then how many at once
  # Without files node would look for tests by itself, and find the reporter.
  [ -n "$1" ] || { printf '\nno test was run\n' && return 1; }
  # shellcheck disable=SC2086
  node --test --test-concurrency="$2" --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=./test/house/closing-reporter.ts --test-reporter-destination=stdout $1
}
tests=0
run "$(listed ! -name '*.engine.test.ts')" "$(getconf _NPROCESSORS_ONLN)" || tests=$?
run "$(listed -name '*.engine.test.ts')" 1 || tests=$?
[ "$setup" -eq 0 ] || printf '\nred: the set-up ended with %s (see above), so not everything could run\n' "$setup"
[ "$tests" -eq 0 ] || exit "$tests"
exit "$setup"
