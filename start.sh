#!/bin/sh
# From a bare machine to a running harness. Safe to run again: it keeps what is already there.
# Each step prints one line with its time; a step that fails says what to type.
set -u

usage() {
  cat <<'TXT'
Usage: ./start.sh [--no-install] [--no-sidecars] [--yes] [COMMAND [ARGS…]]

Sets up Node and packages, a container engine, the sandbox image, the sidecars and the model. If you
give a COMMAND, it then runs `harness COMMAND ARGS…` in the current directory.

If no Ollama answers and none is installed, you are offered Ollama as a container (an image of about
2 GB, downloaded once), then a chat model that fits this machine's memory and processor (1.4 to 19 GB,
each with its size and expected speed), and a model of 0.3 GB for search. Your choice is saved as
chat_model, and you are not asked again. Ctrl-C keeps the part of a model that is downloaded; the next
start continues it. Without a terminal and without --yes, nothing is downloaded.

  --no-install    install nothing (no packages, no engine); print what to type instead
  --no-sidecars   start no sidecar: no Qdrant (the embedded index is used), no Ollama
  --yes           accept every offer: the Ollama container, the first model that fits, its download

  ./start.sh demo               see it work, without a model
  ./start.sh run "fix the bug"  set up everything including a model, then run a task
  ./start.sh --yes run "…"      the same without asking anything
TXT
}

caller=$PWD
case $0 in */*) root=$(cd "${0%/*}" && pwd) ;; *) root=$PWD ;; esac
install=yes
pass=
while [ $# -gt 0 ]; do
  case $1 in
  --no-install) install=no pass="$pass --no-install" ;;
  --no-sidecars | --yes) pass="$pass $1" ;;
  -h | --help) usage && exit 0 ;;
  --) shift && break ;;
  -*) printf 'error: unknown option %s\n  next: ./start.sh --help\n' "$1" >&2 && exit 2 ;;
  *) break ;;
  esac
  shift
done
cd "$root" || exit 1
# Only now, as before PATH could lead into the folder of the caller.
log=$(mktemp "${TMPDIR:-/tmp}/harness-start.XXXXXX" 2>/dev/null) || {
  printf 'error: no file can be made in %s\n  next: TMPDIR=/a/folder/with/space ./start.sh\n' "${TMPDIR:-/tmp}" >&2
  exit 1
}
trap 'rm -f "$log"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
if [ $# -gt 0 ] && [ ! -d "$caller" ]; then
  printf 'error: the current folder no longer exists\n  next: cd to a folder that exists\n' >&2
  exit 2
fi

# The box is a Linux container, so other systems need a virtual machine with an engine in it.
node_hint="apt-get install -y nodejs npm"
case $(uname -s 2>/dev/null) in
Darwin)
  node_hint="brew install node"
  cat >&2 <<'TXT'
  · macOS: needs Node 24 with npm, and an engine in a Linux machine of its own, started: Docker Desktop,
    or colima (brew install colima docker && colima start). harness is not tested on macOS.
TXT
  ;;
MINGW* | MSYS* | CYGWIN* | Windows*)
  cat >&2 <<'TXT'
error: harness does not run on Windows itself
  next: wsl --install, then ./start.sh in a folder of that Linux, with Docker Desktop or an engine in it (not tested)
TXT
  exit 2
  ;;
esac

began=$(date +%s)

# The same line format as the steps that follow in `harness setup`.
ok() {
  printf '  ✓ %-9s %7s s  %s\n' "$1" "$(($(date +%s) - began))" "$2" >&2
  began=$(date +%s)
}
fail() { # step, what happened, what to type
  printf '  ✗ %-9s %7s s  %s\n' "$1" "$(($(date +%s) - began))" "$2" >&2
  [ -s "$log" ] && grep -v 'npm error *$' "$log" | head -n 8 | sed 's/^/                           /' >&2
  printf '                         next: %s\n' "$3" >&2
  exit 1
}

# Two starts at once take turns here; the lock is released before anything long-lived is started.
if command -v flock >/dev/null 2>&1; then
  exec 9<package-lock.json
  flock 9
fi

wanted=$(cksum <package-lock.json)
if [ "$(cat node_modules/.harness-packages 2>/dev/null)" = "$wanted" ]; then
  packages=kept
else
  [ $install = yes ] || fail packages "not installed for this package-lock.json" "npm ci"
  command -v npm >/dev/null 2>&1 ||
    fail node "no npm on PATH" "install Node with npm first, e.g.: $node_hint"
  rm -f node_modules/.harness-packages
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >"$log" 2>&1 </dev/null ||
    fail packages "npm ci did not finish" "npm ci, with a package registry in reach; a full disk shows in: df -h ."
  printf '%s\n' "$wanted" >node_modules/.harness-packages
  packages=installed
fi
: >"$log"
ok packages "$packages"

node=node_modules/.bin/node
[ -x $node ] || node=${HARNESS_NODE:-node}
version=$("$node" --version 2>/dev/null)
major=${version#v}
major=${major%%.*}
[ "${major:-0}" -ge 24 ] 2>/dev/null ||
  fail node "Node 24 or later is needed, found ${version:-none}" "install Node 24 (e.g. $node_hint), or set HARNESS_NODE to one"
ok node "$version"

if [ -f dist/main.cjs ] && [ -s oclif.manifest.json ] && [ -z "$(find src bin package.json -newer oclif.manifest.json -print | head -n 1)" ]; then
  ok build kept
else
  "$node" bin/build.ts >"$log" 2>&1 || fail build "the bundle could not be made" "npm run build"
  : >"$log"
  ok build "bundled"
fi
exec 9<&-

[ $# -eq 0 ] || pass="$pass --brief"
# Commands that ask no model; everything else may, so the model is offered first.
case ${1-} in
apply | completion | config | demo | diff | doctor | env | help | mcp | notes | policy | replay | report | sandbox | \
  sessions | skills | trust | undo | vet | --*) pass="$pass --no-sidecars --no-model" ;;
esac
# shellcheck disable=SC2086 # flags without spaces
bin/harness setup $pass || exit $?
[ $# -gt 0 ] || exit 0
cd "$caller" || exit 1
rm -f "$log"
exec "$root/bin/harness" "$@"
