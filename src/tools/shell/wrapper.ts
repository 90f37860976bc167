/**
 * Bash around one command: it stays on the first line, so that bash counts the command's lines from one. The name of the
 * file for what persists comes on standard input, where nothing that the command starts can read it; it is written only
 * when something has changed, and only by a shell that came to its end.
 *
 * Its form: the folder, then `NAME=value` for each exported variable that is new or different and `NAME` for each that
 * is none any more, then END; each ends with a NUL.
 */
const LEAVE = [
  "__harness_leave() { ( builtin set +eux; builtin umask 077; IFS=$' \\t\\n'; left=() now=' ';",
  'for name in $(builtin compgen -e); do now+="$name ";',
  '[[ ${__harness_was[$name]+x}${__harness_was[$name]} == "x${!name}" ]] || left+=("$name=${!name}"); done;',
  'for name in "${!__harness_was[@]}"; do [[ $now == *" $name "* ]] || left+=("$name"); done;',
  'folder=$(builtin pwd -P) || folder=$PWD; [[ ${#left[@]} == 0 && $folder == "$__harness_at" ]] ||',
  'builtin printf \'%s\\0\' "$folder" "${left[@]}" END >"$__harness_file" ) 2>/dev/null; __harness_file=/dev/null; };',
].join(" ");

const ENTER = [
  "IFS= read -r __harness_file; exec </dev/null; declare -A __harness_was=(); __harness_at=$PWD;",
  "for __harness_name in $(compgen -e); do __harness_was[$__harness_name]=${!__harness_name}; done;",
  "trap '{ set +x; } 2>/dev/null; __harness_leave' EXIT; __harness_text=$1; shift;",
].join(" ");

const WRAPPER = `${LEAVE} ${ENTER} eval "$__harness_text"
{ __harness_code=$?; set +x; } 2>/dev/null; __harness_leave; exit "$__harness_code"`;

export const END = "END";

export const wrapped = (command: string): readonly string[] => ["bash", "-c", WRAPPER, "bash", command];

/** Without anything that persists. */
export const plain = (command: string): readonly string[] => ["bash", "-c", command];
