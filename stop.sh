#!/bin/sh
# Stops the sidecars and removes this user's sandboxes. Sessions are never touched.
set -u

case ${1:-} in
-h | --help)
  cat <<'TXT'
Usage: ./stop.sh [--purge] [--yes]

Stops the sidecars (Qdrant, Ollama) and removes this user's sandboxes. What they keep stays: the
search index and the models are there again at the next ./start.sh. Environments that were built stay,
and are named with what removes them.

  --purge   also remove the images, the environments and the search index of the sidecar, after asking, and
            the models that the Ollama sidecar has loaded, after asking for those; without a terminal only
            with --yes
  --yes     do not ask

Your sessions, checkpoints and settings are never touched.
TXT
  exit 0
  ;;
esac

case $0 in */*) root=$(cd "${0%/*}" && pwd) ;; *) root=$PWD ;; esac
if [ ! -f "$root/dist/main.cjs" ]; then
  printf 'error: this checkout is not built, so nothing can be stopped from it\n  next: ./start.sh\n' >&2
  exit 2
fi
exec "$root/bin/harness" teardown "$@"
