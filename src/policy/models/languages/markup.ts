import type { Arg, Found, Model, Use } from "../model.ts";

const ADDRESS = /^(?:https?|ftp):/i;

/** What is named by an address is fetched. */
function fetches(use: Use): readonly Found[] {
  return [...named(use), ...included(use)];
}

const SCHEMAS: ReadonlySet<string> = new Set(["-schema", "-relaxng", "-schematron"]);

/** A schema may include others by their address. */
const included = ({ options }: Use): readonly Found[] =>
  options.some(({ name }) => name === "-nonet")
    ? []
    : options
        .filter(({ name }) => SCHEMAS.has(name))
        .map(({ span }) => ({ kind: "network", hosts: [], span }));

function named(use: Use): readonly Found[] {
  const words: readonly Arg[] = [...use.operands, ...use.options.flatMap(({ value }) => value ?? [])];
  return words.flatMap((arg): readonly Found[] => {
    const [address] = ADDRESS.exec(arg.value) ?? [];
    if (address === undefined) return [];
    const host = arg.value.slice(address.length).split("/")[2];
    return [{ kind: "network", hosts: host === undefined || host === "" ? [] : [host], span: arg.span }];
  });
}

/** Everything behind the file is a program in JavaScript. */
function fxEffects(use: Use): readonly Found[] {
  return use.operands
    .slice(1)
    .map((text): Found => ({ kind: "code", from: "inline", path: null, text: text.value, span: text.span }));
}

export const MARKUP: Readonly<Record<string, Model>> = {
  xmllint: {
    options: `-noout -format -html -xmlout -nonet -recover -encode= -c14n -c14n11 -exc-c14n -noblanks -huge -timing -stream
      -push -memory -pretty= -nowarning -dropdtd -xpath= -schema=read -relaxng=read -schematron=read -quiet -debug
      -nsclean -nocdata -oldxml10 -noenc -nodefdtd -repeat -insert -walker -sax -sax1 -compress -auto -htmlout -nodict
      -postvalid -testIO -copy -noent!ask -valid!ask -loaddtd!ask -dtdattr!ask -xinclude!ask -noxincludenode!ask
      -shell!ask -output=write -o=write -path=loads -load-trace -catalogs!ask -dtdvalid=loads -dtdvalidfpi=loads`,
    operands: "read*",
    singleDash: true,
    tells: "--version -version --help",
    also: fetches,
  },
  xmlstarlet: {
    operands: "data*",
    fixed: ["ask"],
  },
  gron: {
    options:
      "-ucmsjvk --ungron --colorize --monochrome --stream --json --values --no-sort --version --insecure",
    operands: "read*",
    tells: "--version --help -h",
    also: fetches,
  },
  fx: { operands: "read data*", tells: "--version --help -v -h", also: fxEffects },
  jless: {
    options:
      "-nNrm -s: --mode= --json --yaml --line-numbers --no-line-numbers --relative-line-numbers --scrolloff=",
    operands: "read",
    tells: "--version --help -V -h",
  },
};
