import type { Found, Model, Use } from "../model.ts";
import { escapes } from "./wrappers.ts";

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
