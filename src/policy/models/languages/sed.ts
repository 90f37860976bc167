import type { Arg, Found, Model, Use } from "../model.ts";
import { type SedDeed, sedDeeds } from "./sed-script.ts";

const SCRIPTS: ReadonlySet<string> = new Set(["-e", "--expression"]);
const FILES: ReadonlySet<string> = new Set(["-f", "--file"]);

/** What the scripts do. `--sandbox` makes sed refuse all that reach beyond its text. */
function scriptEffects(use: Use): readonly Found[] {
  const { options, operands } = use;
  const files = options.filter(({ name }) => FILES.has(name));
  const given = options.flatMap(({ name, value }) => (SCRIPTS.has(name) && value !== null ? [value] : []));
  const [first] = operands;
  const own = given.length > 0 || files.length > 0 ? given : operands.slice(0, 1);
  const found = given.length === 0 && files.length > 0 && first !== undefined ? [firstFile(first, use)] : [];
  // Where POSIXLY_CORRECT is set, what stands behind the first operand is no option.
  const early = first === undefined ? use.args : use.args.slice(0, use.args.indexOf(first));
  const asked = options.some(({ name }) => name === "--sandbox");
  if (asked && early.some(({ value }) => value === "--sandbox")) return found;
  return [
    ...found,
    ...files.map(({ value, span, name }) =>
      use.doubt("language.unknown", value ?? { kind: "literal", value: name, span }),
    ),
    ...(own.length === 0 ? [] : textEffects(own, use)),
  ];
}

/** With scripts from files, the first operand is a file like the others. */
function firstFile(arg: Arg, use: Use): Found {
  const writes = use.options.some(({ name }) => name === "-i" || name === "--in-place");
  return { kind: writes ? "write" : "read", path: use.place(arg), span: arg.span };
}

function textEffects(scripts: readonly Arg[], use: Use): readonly Found[] {
  const [first] = scripts as readonly [Arg];
  const open = scripts.find(({ kind }) => kind !== "literal");
  if (open !== undefined)
    return [use.doubt(open.kind === "glob" ? "language.unknown" : "word.dynamic", open)];
  // A backslash at the end of one script may or may not reach into the next.
  const torn = scripts.slice(0, -1).find(({ value }) => value.endsWith("\\"));
  const deeds = sedDeeds(scripts.map(({ value }) => value).join("\n"));
  if (torn !== undefined || deeds === null) return [use.doubt("language.unknown", torn ?? first)];
  return deeds.flatMap((deed) => deedEffects(deed, first, use));
}

function deedEffects(deed: SedDeed, { span }: Arg, use: Use): readonly Found[] {
  if (deed.kind === "input")
    return [{ kind: "code", from: use.input === "network" ? "fetched" : "input", path: null, span }];
  const arg: Arg = { kind: "literal", value: deed.text, span };
  if (deed.kind === "runs") return [use.doubt("language.unknown", arg), ...use.shell(arg)];
  return [{ kind: deed.kind, path: use.place(arg), span }];
}

export const SED: Model = {
  options: `-nErszub -e:pattern -f:read -l: -i?!write --quiet --silent --expression=pattern --file=read --in-place=?!write
    --line-length= --regexp-extended --separate --unbuffered --null-data --zero-terminated --posix --debug --sandbox
    --follow-symlinks --binary`,
  operands: "pattern read*",
  abbreviates: true,
  also: scriptEffects,
};
