import type { Arg, Found, Model, Use } from "./program-model.ts";
import { fileEffects, inlineEffects, inputEffects, isSwitch, onlyBash } from "./shell-builtins.ts";
import { escapes } from "./wrapper-programs.ts";

const has = ({ options }: Use, name: string): boolean => options.some((option) => option.name === name);

const STDIN: ReadonlySet<string> = new Set(["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);

/** A text behind -c, a file, or stdin. A lone `-` in front of them ends the options, as `--` does. */
function run(use: Use): readonly Found[] {
  const [first, second] = use.operands[0]?.value === "-" ? use.operands.slice(1) : use.operands;
  if (has(use, "-c")) return first === undefined ? inputEffects(use) : use.shell(first);
  if (first === undefined || has(use, "-s") || STDIN.has(first.value)) return known(use);
  if (has(use, "-n") && second === undefined)
    return [{ kind: "read", path: use.place(first), span: first.span }];
  return [fileEffects(first, use)];
}

/** What comes in by stdin, and its commands where it stands in the command itself. */
function known(use: Use): readonly Found[] {
  const { input } = use;
  if (typeof input === "string") return inputEffects(use);
  const text: Arg = { kind: "literal", value: input.text, span: input.span };
  const code: Found = { kind: "code", from: "input", path: null };
  const follows =
    input.rough !== true &&
    (use.program === "bash" || (use.program === "sh" && onlyBash(text, use).length === 0));
  return [follows ? { ...code, followed: true } : code, ...use.shell(text)];
}

/** `-o name`: one of the usual switches. */
const switches = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }) =>
    name !== "-o" || value === null || (value.kind === "literal" && isSwitch(value.value))
      ? []
      : [use.doubt("option.unknown", value)],
  );

const SHELL: Model = {
  options: `-c -efhlmnprtuvxBCDsE -o: --login --noprofile --norc --restricted --verbose --noediting
    --init-file=loads --rcfile=loads`,
  operands: "data*",
  strict: true,
  also: (use) => [...switches(use), ...run(use)],
};

/** `sh` may be any of the small ones: what it is told has to mean the same to them as to bash. */
const SMALL: Model = {
  options: "-c -efhlnsuvx -o:",
  operands: "data*",
  strict: true,
  also: (use) => [...switches(use), ...run(use), ...foreign(use)],
};

/** Each with words and quotes of its own: what bash would do is looked at for dangers only. */
const OTHER: Model = {
  ...SMALL,
  also: (use) => [...run(use), ...(has(use, "-c") ? [escapes(use)] : [])],
};

function foreign(use: Use): readonly Found[] {
  const [text] = use.operands;
  return has(use, "-c") && text !== undefined ? onlyBash(text, use) : [];
}

export const SHELLS: Readonly<Record<string, Model>> = {
  bash: SHELL,
  sh: SMALL,
  rbash: SHELL,
  dash: SMALL,
  ash: SMALL,
  zsh: OTHER,
  ksh: OTHER,
  mksh: OTHER,
  yash: OTHER,
  posh: OTHER,
  fish: OTHER,
  csh: OTHER,
  tcsh: OTHER,
  busybox: { options: "--list --list-full", operands: "command*", strict: true },
  toybox: { operands: "command*", strict: true },
};

/** A program as text behind an option, as a file, or from stdin. */
function runner(inline: readonly string[]): (use: Use) => readonly Found[] {
  return (use) => {
    const texts = use.options.filter(({ name }) => inline.includes(name));
    if (texts.length > 0) return texts.map(({ value }) => inlineEffects(value ?? whole(use)));
    const [file] = use.operands;
    return file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];
  };
}

const whole = ({ program, span }: Use): Arg => ({ kind: "dynamic", value: program, span });

/** `-i` changes the files that are given. */
function perl(use: Use): readonly Found[] {
  const texts = use.options.filter(({ name }) => name === "-e" || name === "-E");
  const inPlace = use.options.some(({ name }) => name === "-i");
  if (texts.length === 0) return runner([])(use);
  const files = use.operands.map((arg): Found => ({
    kind: inPlace ? "write" : "read",
    path: use.place(arg),
    span: arg.span,
  }));
  return [...texts.map(({ value }) => inlineEffects(value ?? whole(use))), ...files];
}

/** Settings that only say how much. */
const HOW_MUCH =
  /^(?:memory_limit|max_execution_time|display_errors|error_reporting|zend\.assertions|assert\.exception|xdebug\.mode|date\.timezone)=[\w.-]*$/;

/** With `-S` it is a server of the box, with `-l` it reads a file: in both nothing comes in by stdin. */
function php(use: Use): readonly Found[] {
  const settings = use.options.flatMap(({ name, value }) => {
    if (name !== "-d" || value === null) return [];
    const doubt = use.doubt("option.loads-code", value);
    return [
      value.kind === "literal" && HOW_MUCH.test(value.value) ? { ...doubt, inside: true as const } : doubt,
    ];
  });
  const served = use.options.flatMap(({ name, value }): readonly Found[] =>
    name === "-S" && value !== null ? [{ kind: "network", hosts: [], inside: true, span: value.span }] : [],
  );
  const checks = use.options.some(({ name }) => name === "-l");
  const code: readonly Found[] = [{ kind: "code", from: "project", path: use.folder }];
  const listens = checks || served.length > 0;
  const ran = listens && use.input !== "network" ? code : runner(["-r", "-B", "-R", "-E"])(use);
  return [...settings, ...served, ...ran];
}

const interpreter = (options: string, inline: readonly string[], tells: string): Model => ({
  options,
  operands: "data*",
  strict: true,
  tells,
  also: runner(inline),
});

export const INTERPRETERS: Readonly<Record<string, Model>> = {
  perl: {
    options: "-acnpsStTuUwWX -e: -E: -i? -l? -0? -F: -I:loads -M:loads -m:loads -C? -D? -x?",
    operands: "data*",
    strict: true,
    tells: "-v -V --version --help -h",
    also: perl,
  },
  ruby: interpreter(
    "-acnpsSlwW -e: -r:loads -I:loads -i?write -C:in -E: -K: -x? -y --enable= --disable= --yjit --verbose",
    ["-e"],
    "-v --version --help -h",
  ),
  irb: interpreter("", [], "--version -v"),
  php: {
    ...interpreter(
      "-anqsw -r: -B: -R: -E: -F:project -f:project -l:read -c:loads -d: -z:loads -S: -t:in",
      ["-r", "-B", "-R", "-E"],
      "-v --version -m --help -h",
    ),
    also: php,
  },
  lua: interpreter("-EWi -e: -l:loads", ["-e"], "-v"),
  luajit: interpreter("-EWi -e: -l:loads -j:loads -O? -b:", ["-e"], "-v"),
  tclsh: interpreter("", [], ""),
  wish: interpreter("", [], ""),
  expect: interpreter("-dinv -c: -f:project -b:", ["-c"], "-v"),
  Rscript: interpreter("-e: --vanilla --verbose", ["-e"], "--version"),
  R: interpreter("-q -e: -f:project --vanilla --no-save --slave --quiet", ["-e"], "--version"),
  julia: interpreter("-q -e: -E: -L:loads -p: -t:", ["-e", "-E"], "-v --version"),
  guile: interpreter("-c: -l:loads -s:project", ["-c"], "--version -v"),
  osascript: interpreter("-e: -l:", ["-e"], ""),
  groovy: interpreter("-e: --classpath=loads", ["-e"], "-v --version"),
  scala: interpreter("-e:", ["-e"], "-version --version"),
  pwsh: interpreter("", [], "--version -v"),
  powershell: interpreter("", [], ""),
  ghci: interpreter("", [], "--version"),
  erl: interpreter("", [], ""),
  iex: interpreter("", [], "--version"),
  sbcl: interpreter("--script=project", [], "--version"),
  racket: interpreter("-e:", ["-e"], "--version"),
};

/** Editors, debuggers and the like: each has a way to run any command, and most need a person. */
const ESCAPING: Model = { tells: "--version --help -version -V", reads: (use) => [escapes(use)] };

const NAMES = `vi vim nvim view ex ed rvim gvim vimdiff emacs emacsclient nano pico micro joe mcedit mc code codium subl kate
  gedit zed hx helix gdb lldb cgdb rr strace ltrace dtrace bpftrace perf valgrind catchsegv ptrace tmux screen dtach
  zellij byobu reptyr nmtui dialog whiptail duckdb ranger nnn lf vifm telnetd inetd rlwrap socksify
  jrunscript jdb ipython ipython3 bpython ptpython pry artisan most msfconsole cmd start open xdg-open
  gnuplot octave maxima gp sage latex pdflatex xelatex lualatex tex`;

/** `+command` at its start. */
const plus = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.startsWith("+")).map((arg) => use.doubt("operand.unknown", arg));

/** Without a terminal a pager only prints. */
const PAGER: Model = {
  options: "-NUM -eEfFgGiIJmMnNqQrRsSuUwWXc",
  operands: "read*",
  tells: "--version --help -V",
  also: plus,
};

/** Names of pages only: a path would be formatted by macros of its own. */
const page = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.includes("/")).map((arg) => use.doubt("operand.unknown", arg));

const MANUAL: Model = {
  options: "-a -f -k -w -s: -S: --all --whatis --apropos --where --path",
  operands: "data*",
  also: page,
};

export const ESCAPING_PROGRAMS: Readonly<Record<string, Model>> = {
  ...Object.fromEntries(NAMES.split(/\s+/).map((name) => [name, ESCAPING])),
  less: PAGER,
  more: PAGER,
  man: MANUAL,
  apropos: { options: "-aelrw -s:", operands: "data*" },
  whatis: { options: "-lrw -s:", operands: "data*" },
  info: { operands: "data*", fixed: ["ask"] },
};
