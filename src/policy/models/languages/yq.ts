import type { Found, Model, Use } from "../model.ts";
import { roleEffects } from "../roles.ts";
import { filterEffects } from "./jq.ts";

const VERBS: ReadonlySet<string> = new Set(["e", "eval", "ea", "eval-all"]);
const IN_PLACE: ReadonlySet<string> = new Set(["-i", "--inplace", "--in-place"]);

/** What no file is called that anybody would name here. */
const EXPRESSION = /^(?!\/|~|\.\.)[^]*[|()[\]{}"'=*]/;

/** Two programs have this name; only what is harmless in both is taken. The first operand may be a file or an expression. */
function yqEffects(use: Use): readonly Found[] {
  const operands = VERBS.has(use.operands[0]?.value ?? "") ? use.operands.slice(1) : use.operands;
  const given = use.options.flatMap(({ name, value }) =>
    name === "--expression" && value !== null ? [value] : [],
  );
  const [first, ...files] = operands;
  const unclear = first !== undefined && (first.kind !== "literal" || !EXPRESSION.test(first.value));
  const role = use.options.some(({ name }) => IN_PLACE.has(name)) ? "write" : "read";
  const read = unclear ? operands : files;
  return [
    ...read.flatMap((arg) => roleEffects(role, arg, use, { forced: false, recursive: false })),
    ...[...given, ...operands.slice(0, 1)].flatMap((arg) => filterEffects(arg, use)),
  ];
}

export const YQ: Model = {
  options: `-reCMPNnjcvy -o: -p: -I: -i --inplace --in-place --raw-output --exit-status --colors
    --no-colors --prettyPrint --no-doc --null-input --tojson --compact-output --verbose --yaml-output --output-format=
    --input-format= --indent= --expression= --unwrapScalar=? --width= --sort-keys -S --nul-output -0`,
  operands: "data*",
  tells: "--version --help -V -h help",
  also: yqEffects,
};
