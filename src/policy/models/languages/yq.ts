import type { Found, Model, Use } from "../model.ts";
import { filterEffects } from "./jq.ts";

const VERBS: ReadonlySet<string> = new Set(["e", "eval", "ea", "eval-all"]);
const EXPRESSIONS: ReadonlySet<string> = new Set(["--expression"]);

/** Two programs have this name; only what is harmless in both is taken. The first operand may be a file or an expression. */
function yqEffects(use: Use): readonly Found[] {
  const operands = VERBS.has(use.operands[0]?.value ?? "") ? use.operands.slice(1) : use.operands;
  const given = use.options.flatMap(({ name, value }) =>
    EXPRESSIONS.has(name) && value !== null ? [value] : [],
  );
  const other = use.operands[0];
  const completes = other !== undefined && /^(?:completion|shell-completion|help)$/.test(other.value);
  return [
    ...[...given, ...operands.slice(0, 1)].flatMap((arg) => (completes ? [] : filterEffects(arg, use))),
  ];
}

export const YQ: Model = {
  options: `-reCMPNnjcvy -o: -p: -I: -i!write --inplace!write --in-place!write --raw-output --exit-status --colors
    --no-colors --prettyPrint --no-doc --null-input --tojson --compact-output --verbose --yaml-output --output-format=
    --input-format= --indent= --expression= --unwrapScalar=? --width= --sort-keys -S --nul-output -0`,
  operands: "read*",
  tells: "--version --help -V -h help",
  also: yqEffects,
};
