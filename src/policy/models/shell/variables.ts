import { ENVIRONMENT, isInert, isPrivate, variableDoubt } from "../../effects/environment.ts";
import { type Found, type Model, UNKNOWN, type Use } from "../model.ts";

/** All variables, and with them whatever secret stands in one. */
export const PRINTS_ENVIRONMENT = ({ span }: Use): readonly Found[] => [
  { kind: "read", path: ENVIRONMENT, span },
];

/** `NAME=value` and `NAME` as arguments; `own` when it stays inside the shell. */
export function assigned(use: Use, args: Use["args"], own: boolean): readonly Found[] {
  return args.flatMap((arg) => {
    const [, name, value] = /^(\w+)(?:\+?=([^]*))?$/.exec(arg.value) ?? [];
    if (name === undefined || (own && isAgain(value)) || (arg.kind !== "literal" && value === undefined))
      return [use.doubt("shell.expansion", arg)];
    const known = arg.kind === "literal" ? (value ?? null) : null;
    return isInert(name, known) || (own && isPrivate(name)) ? [] : [variable(use, arg, { name, known })];
  });
}

interface Named {
  readonly name: string;
  readonly known: string | null;
}

function variable(use: Use, arg: Use["args"][number], { name, known }: Named): Found {
  const inside = name !== "IFS" && use.tame(name, known);
  return { ...use.doubt(variableDoubt(name), arg, name), ...(inside ? { inside } : {}) };
}

/** `-a x=(…)`: the words in it are expanded once more. */
const isAgain = (value = ""): boolean => value.startsWith("(") || value.startsWith(UNKNOWN);

export const EXPORT: Model = {
  options: "-p -n",
  operands: "data*",
  also: (use) => (use.operands.length === 0 ? PRINTS_ENVIRONMENT(use) : assigned(use, use.operands, false)),
};

/** Attributes that make values run, change or stay, or stand for other names, are left out. */
export const DECLARE: Model = {
  options: "-p -a -A -g -F",
  operands: "data*",
  also: (use) => (use.operands.length === 0 ? PRINTS_ENVIRONMENT(use) : assigned(use, use.operands, true)),
};

export const UNSET: Model = {
  options: "-v",
  operands: "data*",
  also: (use) => assigned(use, use.operands, true),
};
