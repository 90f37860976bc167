import type { Arg, Found, Model, Use } from "../model.ts";
import { type AwkDeed, awkDeeds } from "./awk-program.ts";

const TEXTS: ReadonlySet<string> = new Set(["-e", "--source"]);
const VARIABLES: ReadonlySet<string> = new Set(["-v", "--assign"]);
const FILES: ReadonlySet<string> = new Set(["-f", "--file", "-E", "--exec", "-i", "--include"]);
/** Of mawk's `-W`: what tells of itself, or is harmless. */
const WISHES: ReadonlySet<string> = new Set(["version", "help", "usage", "posix", "interactive", "v", "V"]);

function programEffects(use: Use): readonly Found[] {
  const { options, operands } = use;
  const given = options.flatMap(({ name, value }) => (TEXTS.has(name) && value !== null ? [value] : []));
  const files = options.some(({ name }) => FILES.has(name));
  const own = given.length > 0 || files ? given : operands.slice(0, 1);
  const others = files && given.length === 0 ? operands.slice(0, 1) : [];
  return [
    ...others.map(({ span, ...arg }) => ({ kind: "read", path: use.place({ span, ...arg }), span }) as const),
    ...optionDoubts(use),
    ...operands
      .filter(({ value }) => /^ARG[CV]=/.test(value))
      .map((arg) => use.doubt("operand.unknown", arg)),
    ...textEffects(own, use),
  ];
}

function optionDoubts(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value }) => {
    if (value === null) return [];
    if (name === "-W" && !WISHES.has(value.value))
      return [use.doubt("option.unknown", value, `-W ${value.value}`)];
    if (!VARIABLES.has(name)) return [];
    // Without quotes, what is not known could be several words, and the second one a program.
    if (value.loose === true || value.kind === "glob") return [use.doubt("word.dynamic", value)];
    return /^[A-Za-z_]\w*=/.test(value.value) && !value.value.startsWith("ARG")
      ? []
      : [use.doubt("operand.unknown", value)];
  });
}

/** Several texts are one program, each on a line of its own. */
function textEffects(texts: readonly Arg[], use: Use): readonly Found[] {
  const [first] = texts;
  if (first === undefined) return [];
  const open = texts.find(({ kind }) => kind !== "literal");
  if (open !== undefined)
    return [use.doubt(open.kind === "glob" ? "language.unknown" : "word.dynamic", open)];
  const deeds = awkDeeds(texts.map(({ value }) => value).join("\n"));
  if (deeds === null) return [use.doubt("language.unknown", first)];
  return deeds.map((deed) => deedEffect(deed, first, use));
}

function deedEffect(deed: AwkDeed, { span }: Arg, use: Use): Found {
  switch (deed.kind) {
    case "environment":
      return { kind: "read", path: "/proc/self/environ", span };
    case "read":
    case "write":
      return { kind: deed.kind, path: use.place({ kind: "literal", value: deed.path, span }), span };
    case "unknown":
      return use.doubt("language.unknown", { kind: "literal", value: "", span });
  }
}

const AWK: Model = {
  options: `-F: -v: -W: -e:pattern -f:loads -E:loads -i:loads -l:loads -bcghMnNOPrsStCV --field-separator= --assign=
    --source=pattern --file=loads --exec=loads --include=loads --load=loads --characters-as-bytes --traditional --posix
    --re-interval --sandbox --lint=? --lint-old --non-decimal-data --use-lc-numeric --optimize --no-optimize --bignum
    --csv -k --copyright`,
  operands: "pattern read*",
  tells: "--version --help -V -h -version --copyright",
  strict: true,
  also: programEffects,
};

/** All implementations of awk: no option or word is taken that any of them could read otherwise. */
export const AWKS: Readonly<Record<string, Model>> = {
  awk: AWK,
  gawk: AWK,
  mawk: AWK,
  nawk: AWK,
  "original-awk": AWK,
};
