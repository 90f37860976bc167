/**
 * Bash around one command, which stays on the first line, so that bash counts the command's own lines from one. The file
 * for what persists and the token of the call come on standard input, where nothing that the command starts can read
 * them; the file is written only by a shell that came to its end.
 *
 * Its form: the token, the folder, `NAME=value` for each exported variable, the box's own among them, then END; each
 * ends with a NUL.
 *
 * A fork costs more than all of this, so there is none: the names go through the file itself, and the umask, which a
 * trap of the command's own may still need, through a pipe of the shell.
 */

const LEAVE = [
  "__h_leave() { [[ $__h_file ]] || return 0; local -; set +aefux; local __h_n __h_fd; local -a __h_all=() __h_left=();",
  'exec {__h_fd}<<<\'\'; builtin umask >/proc/self/fd/"$__h_fd"; builtin mapfile -t -u "$__h_fd" __h_all; exec {__h_fd}<&-;',
  'local __h_mask=${__h_all[1]-}; builtin umask 077; __h_write; builtin umask "$__h_mask"; __h_file=; };',
  '__h_write() { builtin compgen -e >|"$__h_file" || return; builtin mapfile -t __h_all <"$__h_file";',
  'for __h_n in "${__h_all[@]}"; do __h_left+=("$__h_n=${!__h_n}"); done; builtin cd -P .;',
  'builtin printf "%s\\0" "$__h_token" "${PWD%/.}" "${__h_left[@]}" END >|"$__h_file"; };',
].join(" ");

const ENTER = [
  "IFS=' ' read -r __h_file __h_token; exec </dev/null; __h_text=$1; shift;",
  "trap '{ set +x; __h_leave; } 2>/dev/null' EXIT;",
].join(" ");

const WRAPPER = `${LEAVE} ${ENTER} eval -- "$__h_text"
{ __h_code=$?; set +x; __h_leave; } 2>/dev/null; exit "$__h_code"`;

export const END = "END";

export const wrapped = (command: string): readonly string[] => ["bash", "-c", WRAPPER, "bash", command];

/** Without anything that persists. */
export const plain = (command: string): readonly string[] => ["bash", "-c", command];
