/** What the pod of an index clones. */
export interface CloneSource {
  readonly url: string;
  /** A branch, a tag or a commit; null for the default branch. */
  readonly ref: string | null;
  /** Where the tree has to lie; if absent, at the common place. */
  readonly tree?: string;
}

const COMMIT = /^[0-9a-f]{40}$/;

/**
 * One line: address, kind of ref, ref, and possibly a place, separated by tabs. No field may contain a tab or a line
 * break.
 */
export function cloneLine({ url, ref, tree }: CloneSource): string {
  const kind = ref === null ? "current" : COMMIT.test(ref) ? "commit" : "branch";
  const fields = [url, kind, ref ?? "", ...(tree === undefined ? [] : [tree])];
  if (fields.some((field) => /[\t\r\n\0]/.test(field)))
    throw new Error("an address has no tab and no line break");
  return fields.join("\t");
}

/**
 * Runs in the shell of the loop's image before the loop begins. Nothing that a repository brings is obeyed: no hooks,
 * templates, submodules or filters, and no other protocol. Exits with 2 if a retry would be refused too, with 1 if the
 * host was unreachable.
 */
export const CLONE_SCRIPT = `set -u
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_LFS_SKIP_SMUDGE=1
export GIT_ASKPASS=/bin/false GIT_ALLOW_PROTOCOL=https:http
told=\${HARNESS_TOLD:-/dev/termination-log}
tab=$(printf '\\t')
line=$(cat "$HARNESS_CLONES"/clones-*.tsv | sed -n "$((JOB_COMPLETION_INDEX + 1))p")
url=\${line%%"$tab"*}
rest=\${line#*"$tab"}
kind=\${rest%%"$tab"*}
rest=\${rest#*"$tab"}
ref=\${rest%%"$tab"*}
case $rest in *"$tab"*) HARNESS_TREE=\${rest#*"$tab"} ;; esac
[ -n "$url" ] || { echo "there is no row for index $JOB_COMPLETION_INDEX" >"$told"; exit 2; }
said=$(mktemp)
safe_git() {
  timeout 300 git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c submodule.recurse=false \\
    -c credential.helper= -c core.attributesFile=/dev/null "$@" 2>"$said"
}
clone() {
  rm -rf "$HARNESS_TREE"
  case $kind in
  branch) set -- --branch "$ref" "$@" ;;
  commit) set -- --no-checkout "$@" ;;
  esac
  safe_git clone --quiet --template= --no-recurse-submodules --single-branch "$@" -- "$url" "$HARNESS_TREE"
}
all() {
  if [ "$kind" = commit ]; then
    clone && safe_git -C "$HARNESS_TREE" fetch --quiet --no-recurse-submodules origin "$ref" &&
      safe_git -C "$HARNESS_TREE" checkout --quiet --detach "$ref"
  else
    clone --depth 1 || { grep -q 'shallow capabilities' "$said" && clone; }
  fi
}
all && exit 0
why=$(grep -v '^$' "$said" | tail -n 1 | cut -c 1-1000)
printf '%s: %s' "$url" "\${why:-git was stopped after 300 s}" >"$told"
grep -qiE 'resolve host|connect|timed out|early EOF|reset by peer|error: (429|5[0-9][0-9])' "$said" && exit 1
[ -n "$why" ] || exit 1
exit 2
`;
