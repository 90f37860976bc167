import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { inlineEffects } from "../shell/code.ts";
import { programEffects } from "./interpreters.ts";
import { named, word } from "./parts.ts";
import { PYTHON_MODULES } from "./python-modules.ts";

const FLAGS = /^-[bBdEiIOPqRsSuvx]+$/;

const TELLS = "--version -V -VV --help -h -? --help-env --help-xoptions --help-all";
/** Settings of the interpreter that neither write nor load anything. */
const SETTINGS =
  /^(?:dev|utf8(?:=[01])?|importtime|faulthandler|tracemalloc(?:=\d+)?|no_debug_ranges|frozen_modules(?:=\w+)?|int_max_str_digits=\d+|showrefcount|perf|gil=[01])$/;

/** Its options end at the program: a file, `-c text`, `-m module`, or stdin. */
function python(use: Use): readonly Found[] {
  const found: Found[] = [];
  const { args } = use;
  for (let at = 0; at < args.length;) {
    const arg = args[at] as Arg;
    // It goes on with what comes in by stdin, once the program ends.
    if (GOES_ON.test(arg.value)) found.push(...programEffects(undefined, use));
    if (ENDS.test(arg.value)) return [...found, ...programOf(arg, args.slice(at + 1), use)];
    const words = harmlessWords(arg, args[at + 1]);
    if (words === 0) found.push(use.doubt("option.unknown", arg));
    at += Math.max(words, 1);
  }
  return [...found, ...programEffects(undefined, use)];
}

/** A file, `-`, `--`, `-c` or `-m`, the last two perhaps behind flags. */
const ENDS = /^(?:[^-]|-?$|--$|-[bBdEiIOPqRsSuvx]*[cm])/;
const GOES_ON = /^-[bBdEIOPqRsSuvx]*i/;
const LAST = /^-[bBdEiIOPqRsSuvx]*([cm])([\s\S]*)$/;
const SETTING = /^-[bBdEiIOPqRsSuvx]*([WX])([\s\S]*)$/;

/** How many words an option takes; 0 for one that is not known to be harmless. */
function harmlessWords({ kind, value }: Arg, next: Arg | undefined): 0 | 1 | 2 {
  if (kind !== "literal") return 0;
  if (FLAGS.test(value)) return 1;
  if (value === "--check-hash-based-pycs") return 2;
  const [, letter, attached] = SETTING.exec(value) ?? [];
  if (letter === undefined) return 0;
  const setting = attached === "" ? next?.value : attached;
  if (letter === "X" && (setting === undefined || !SETTINGS.test(setting))) return 0;
  return attached === "" ? 2 : 1;
}

function programOf(first: Arg, rest: readonly Arg[], use: Use): readonly Found[] {
  if (first.value === "--") return programEffects(rest[0], use);
  const [, letter, attached = ""] = LAST.exec(first.value) ?? [];
  if (letter === undefined) return programEffects(first, use);
  const apart = attached === "";
  const value = (apart ? rest[0] : { ...first, value: attached }) ?? first;
  return letter === "c" ? [inlineEffects(value)] : moduleEffects(value, apart ? rest.slice(1) : rest, use);
}

/** Even a module of the language itself may import one of the same name from where it runs. */
function moduleEffects(module: Arg, rest: readonly Arg[], use: Use): readonly Found[] {
  const settings = fixedEffect("settings", use.folder, use.program);
  const known = module.kind === "literal" ? PYTHON_MODULES.get(module.value) : undefined;
  if (known !== undefined) return [settings, ...use.command([word(known, module), ...rest])];
  return [
    { kind: "code", from: "project", path: use.folder, span: module.span },
    { ...use.doubt("operand.unknown", module), ...(isOwn(module, rest) ? { inside: true } : {}) },
  ];
}

/** Modules of the language, and well-known ones, that ask the network or run what they are told. */
const REACHING =
  /^(?:smtpd|smtplib|ftplib|telnetlib|nntplib|poplib|imaplib|webbrowser|xmlrpc|urllib|http|asyncio|code|pdb|bdb|trace|runpy|idlelib|socket\w*|ssl|twine|keyring|wheel|easy_install|playwright|nltk|spacy|huggingface_hub|awscli|ansible\w*|flit|conda|mamba|requests|httpx|speedtest|boto\w*|invoke|fabric|pyftpdlib|twisted|timeit|uvicorn|gunicorn|jupyter\w*|notebook)(?:\.|$)/;

/** A module that no other project is known for, on the project's own files. */
const isOwn = ({ kind, value }: Arg, rest: readonly Arg[]): boolean =>
  kind === "literal" &&
  /^[a-z_]\w*(?:\.\w+)*$/i.test(value) &&
  !REACHING.test(value) &&
  !rest.some((arg) => OUT.test(arg.value));

/** An address, or a path that leads out. */
const OUT = /:\/\/|(?:^|[=:,])(?:~|\/(?!tmp\/))|(?:^|[=:,/])\.\.(?:\/|$)/;

const PYTHON: Model = { reads: python, tells: TELLS };

export const PYTHONS: Readonly<Record<string, Model>> = named(
  `python python2 python2.7 python3 python3.6 python3.7 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13
   python3.14 python3.15 pypy pypy3 py`,
  PYTHON,
);
