import type { Arg, Found, Model, Use } from "../model.ts";
import { gnu } from "../plain.ts";

const LINE_ENDS: Model = {
  operands: "write*",
  options: `-n!write -o!write -kqfblsumv7 -c: -i?!read -O!read --newfile!write --oldfile!write --keepdate --quiet --force --convmode= --info=?!read
    --to-stdout!read --add-eol --newline --safe --verbose --keep-bom --remove-bom --add-bom`,
  tells: "-h -V -L --help --version --license",
};

/** Programs that write copies of what they read. */
export const PIECES: Readonly<Record<string, Model>> = {
  tee: gnu("write*", "-aip --append --ignore-interrupts --output-error=?"),
  sponge: { operands: "write?", options: "-a" },
  split: gnu(
    "read data?",
    `-NUM -deux -a: -b: -C: -l: -n: -t: --suffix-length= --additional-suffix= --bytes= --line-bytes= --numeric-suffixes=?
    --hex-suffixes=? --elide-empty-files --filter=shell --lines= --number= --separator= --unbuffered --verbose`,
    (use) => parts(use, use.operands[1], "x"),
  ),
  csplit: gnu(
    "read data*",
    `-ksqz -b: -f: -n: --suffix-format= --prefix= --keep-files --suppress-matched --digits= --quiet --silent
    --elide-empty-files`,
    (use) =>
      parts(use, use.options.findLast(({ name }) => name === "-f" || name === "--prefix")?.value, "xx"),
  ),
  dd: { reads: ddEffects },
  dos2unix: LINE_ENDS,
  unix2dos: LINE_ENDS,
  mac2unix: LINE_ENDS,
};

/** Any number of files whose names begin like this. */
function parts(use: Use, prefix: Arg | null | undefined, standard: string): readonly Found[] {
  const { kind, value, span } = prefix ?? { kind: "literal", value: standard, span: use.span };
  const pattern: Arg = { kind: kind === "dynamic" ? kind : "glob", value: `${value}*`, span };
  return [{ kind: "write", path: use.place(pattern), span }];
}

const NUMBERS = new Set("bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status".split(" "));

/** `name=value`, each of its own. */
function ddEffects(use: Use): readonly Found[] {
  return use.args.flatMap((arg) => {
    const equals = arg.value.indexOf("=");
    const name = arg.value.slice(0, Math.max(equals, 0));
    const value: Arg = { ...arg, value: arg.value.slice(equals + 1) };
    if (name === "if") return [{ kind: "read", path: use.place(value), span: arg.span } satisfies Found];
    if (name === "of") return [{ kind: "write", path: use.place(value), span: arg.span } satisfies Found];
    if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
    return NUMBERS.has(name) ? [] : [use.doubt("option.unknown", arg)];
  });
}
