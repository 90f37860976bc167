#!/bin/sh
# Stops the sidecars and removes this user's sandboxes. Sessions are never touched.
set -u

case ${1:-} in
-h | --help)
  cat <<'TXT'
Usage: ./stop.sh [--purge] [--yes]

Stops the sidecars (Qdrant, Ollama) and removes your sandboxes. Their data stays: the next ./start.sh
finds the search index and the models again. Environments that you built stay; each is listed with the
command that removes it.

  --purge   also remove the images, the environments and the sidecar's search index, after asking; and the
            models that the Ollama sidecar downloaded, after a separate question. Without a terminal this
            needs --yes
  --yes     do not ask

Never touches your sessions, checkpoints and settings.
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
