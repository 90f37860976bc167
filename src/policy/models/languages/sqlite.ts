import type { Arg, Found, Model, Use } from "../model.ts";
import { escapes } from "../shell/wrappers.ts";

const FLAGS =
  /^--?(?:header|noheader|column|csv|json|line|list|html|markdown|box|table|tabs|quote|ascii|batch|bail|readonly|echo|safe|stats|interactive|nofollow|deserialize|utf8)$/;
const VALUES = /^--?(?:separator|nullvalue|newline|maxsize|cmd)$/;
/** Commands of its own that only print, or say how. */
const TELLING =
  /^\.(?:tables?|schema|fullschema|ind(?:ex|ices|exes)|databases|dump|mode|headers?|separator|nullvalue|width|timer|echo|bail|changes|stats|explain|eqp|show|quit|exit|print|help|dbinfo|limit|version|lint|sha3sum|timeout|parameter)(?:\s[^|`]*)?$/;
/** Other files, and code. */
const REACHING =
  /\b(?:attach|load_extension|readfile|writefile|edit|zipfile|fsdir|fts3_tokenizer|vacuum\s+into|vacuum\s+\w+\s+into|temp_store_directory|data_store_directory|writable_schema|trusted_schema)\b/i;

/** Statements and commands of the program, a line each. */
function isTame({ kind, value }: Pick<Arg, "kind" | "value">): boolean {
  const lines = value.split("\n").map((line) => line.trim());
  return (
    kind === "literal" &&
    !REACHING.test(value) &&
    lines.every((line) => !line.startsWith(".") || TELLING.test(line))
  );
}

interface Told {
  readonly operands: readonly Arg[];
  readonly tame: boolean;
}

function toldBy(args: readonly Arg[]): Told {
  const operands: Arg[] = [];
  let tame = true;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    const valued = VALUES.test(arg.value);
    if (!arg.value.startsWith("-")) operands.push(arg);
    else tame &&= arg.kind === "literal" && (valued ? isTame(args[at + 1] ?? arg) : FLAGS.test(arg.value));
    if (valued) at += 1;
  }
  return { operands, tame };
}

function isTameInput(input: Use["input"]): boolean {
  if (typeof input === "string") return input === "nothing" || input === "project";
  return input.rough !== true && isTame({ kind: "literal", value: input.text });
}

function fileOf(base: Arg | undefined, use: Use): readonly Found[] {
  if (base === undefined || (base.kind === "literal" && /^(?::memory:)?$/.test(base.value))) return [];
  return [{ kind: "write", path: base.value.startsWith("file:") ? null : use.place(base), span: base.span }];
}

/** It has commands that run any other: always asked, and inside as long as none of them is there. */
function sqlite(use: Use): readonly Found[] {
  const { operands, tame } = toldBy(use.args);
  const [base, ...statements] = operands;
  const inside = tame && (statements.length > 0 ? statements.every(isTame) : isTameInput(use.input));
  return [{ ...escapes(use), ...(inside ? { inside } : {}) }, ...fileOf(base, use)];
}

export const SQLITE: Model = { tells: "--version --help -version -help", reads: sqlite };
