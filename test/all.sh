#!/bin/sh
# Everything, from a fresh clone: set-up, checks, all tests. A set-up that fails is red even though the tests
# that need no engine still run; what could not run is listed with its reason. With --changed only the tests that
# a change touches, without set-up and checks.
set -u
cd "$(dirname "$0")/.." || exit 1

case " $* " in
*" --changed "*)
  PATH=$PWD/node_modules/.bin:$PATH
  case " $* " in *" --all "*) node bin/build.ts || exit 1 ;; esac
  exec node test/run.ts "$@"
  ;;
esac

# A model may be on offer; a question would hold the tests up.
./start.sh --no-sidecars </dev/null
setup=$?
[ -x node_modules/.bin/node ] || [ -d node_modules ] || exit "$setup"
PATH=$PWD/node_modules/.bin:$PATH

sh test/check.sh || exit 1
tests=0
node test/run.ts "$@" || tests=$?
[ "$setup" -eq 0 ] || printf '\nred: the set-up ended with %s (see above), so not everything could run\n' "$setup"
[ "$tests" -eq 0 ] || exit "$tests"
exit "$setup"
