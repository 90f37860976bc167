import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
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
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    if (!arg.value.startsWith("-") || arg.value === "-") return [...found, ...programEffects(arg, use)];
    if (arg.kind !== "literal") return [...found, use.doubt("word.dynamic", arg)];
    if (arg.value === "--") return [...found, ...programEffects(args[at + 1], use)];
    if (FLAGS.test(arg.value)) continue;
    const [, letter = "", attached = ""] = /^-[bBdEiIOPqRsSuvx]*([cmWX])([\s\S]*)$/.exec(arg.value) ?? [];
    const value = attached === "" ? args[at + 1] : { ...arg, value: attached };
    const rest = args.slice(attached === "" ? at + 2 : at + 1);
    if (letter === "c") return [...found, inline(value, use)];
    if (letter === "m") return [...found, ...moduleEffects(value ?? arg, rest, use)];
    const known =
      letter === "W" || (letter === "X" && value?.kind === "literal" && SETTINGS.test(value.value));
    if (!known && arg.value !== "--check-hash-based-pycs") found.push(use.doubt("option.unknown", arg));
    if (attached === "") at += 1;
  }
  return [...found, ...programEffects(undefined, use)];
}

const inline = (text: Arg | undefined, { folder, span }: Use): Found => ({
  kind: "code",
  from: "inline",
  path: folder,
  text: text?.kind === "literal" ? text.value : "",
  span: text?.span ?? span,
});

/** Even a module of the language itself may import one of the same name from where it runs. */
function moduleEffects(module: Arg, rest: readonly Arg[], use: Use): readonly Found[] {
  const settings = fixedEffect("settings", use.folder, use.program);
  const known = module.kind === "literal" ? PYTHON_MODULES.get(module.value) : undefined;
  if (known !== undefined) return [settings, ...use.command([word(known, module), ...rest])];
  return [
    { kind: "code", from: "project", path: use.folder, span: module.span },
    use.doubt("operand.unknown", module),
  ];
}

const PYTHON: Model = { reads: python, tells: TELLS };

export const PYTHONS: Readonly<Record<string, Model>> = named(
  `python python2 python2.7 python3 python3.6 python3.7 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13
   python3.14 python3.15 pypy pypy3 py`,
  PYTHON,
);
