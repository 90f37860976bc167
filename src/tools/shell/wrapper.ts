/**
 * Bash around one command, which stays on the first line, so that bash counts the command's own lines from one. The name
 * of the file for what persists comes on standard input, where nothing that the command starts can read it; it is written
 * only when something has changed, and only by a shell that came to its end.
 *
 * Its form: the folder, then `NAME=value` for each exported variable that is new or different and `NAME` for each that
 * is none any more, then END; each ends with a NUL.
 */

/**
 * What is exported goes through a pipe of the shell itself, as a fork costs more than all the rest: what a call begins
 * with is bounded and fits into a pipe.
 */
const LOOK = [
  "__h_look() { local __h_n __h_fd; local -a __h_all; exec {__h_fd}<<<'';",
  "compgen -e >/proc/self/fd/$__h_fd; mapfile -t -u $__h_fd __h_all; exec {__h_fd}<&-;",
  'for __h_n in "${__h_all[@]}"; do [[ -n $__h_n ]] && __h_was[$__h_n]=${!__h_n}; done; };',
].join(" ");

/** Where the list cannot be had, for want of processes, nothing is written: everything would look unset. */
const LEAVE = [
  "__h_leave() { local -; set +aefux; local IFS=$' \\t\\n' __h_n __h_names; local -a __h_left=();",
  "__h_names=$(builtin compgen -e) || return; local __h_all=\" ${__h_names//$'\\n'/ } \";",
  'for __h_n in $__h_names; do [[ ${__h_was[$__h_n]+x}${__h_was[$__h_n]} == "x${!__h_n}" ]] ||',
  '__h_left+=("$__h_n=${!__h_n}"); done;',
  'for __h_n in "${!__h_was[@]}"; do [[ $__h_all == *" $__h_n "* ]] || __h_left+=("$__h_n"); done;',
  'builtin cd -P . ; PWD=${PWD%/.}; [[ ${#__h_left[@]} == 0 && $PWD == "$__h_at" ]] ||',
  '( umask 077; builtin printf "%s\\0" "$PWD" "${__h_left[@]}" END >"$__h_file" ); __h_file=/dev/null; };',
].join(" ");

const ENTER = [
  "IFS= read -r __h_file; exec </dev/null; declare -A __h_was=(); __h_at=$PWD; __h_look; __h_text=$1; shift;",
  "trap '{ set +x; __h_leave; } 2>/dev/null' EXIT;",
].join(" ");

const WRAPPER = `${LOOK} ${LEAVE} ${ENTER} eval -- "$__h_text"
{ __h_code=$?; set +x; __h_leave; } 2>/dev/null; exit "$__h_code"`;

export const END = "END";

export const wrapped = (command: string): readonly string[] => ["bash", "-c", WRAPPER, "bash", command];

/** Without anything that persists. */
export const plain = (command: string): readonly string[] => ["bash", "-c", command];
