import type { Doubt } from "../effects/effect.ts";
import { fixedEffect } from "./argument-roles.ts";
import type { Arg, Fixed, Found, Model, Use } from "./program-model.ts";

/** More about one use than its table says. */
export type Also = (use: Use) => readonly Found[];

/** A program of which every use, whatever its words, has these effects. */
export const always = (...fixed: readonly Fixed[]): Model => ({
  reads: (use) => [
    ...fixed.map((each) => fixedEffect(each, use.folder, use.program)),
    ...(fixed.includes("project") ? elsewhere(use) : []),
  ],
});

/** Code may also lie where an argument leads out of the folder. */
const elsewhere = (use: Use): readonly Found[] =>
  use.args.flatMap((arg) => {
    const path = arg.value.slice(arg.value.indexOf("=") + 1);
    if (!path.startsWith("/") && !path.includes("..")) return [];
    return [{ kind: "code", from: "project", path: use.place({ ...arg, value: path }), span: arg.span }];
  });

/** A command of its own, among the programs of the project. */
export const COMMAND: Model = { strict: true, operands: "command*", fixed: ["project"] };

/** A tool that checks the files it is given, with the project's settings. */
export const checks = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version --help -h",
  ...more,
});

/** One model under many names. */
export const named = (names: string, model: Model): Readonly<Record<string, Model>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, model]));

export const allOf =
  (...parts: readonly Also[]): Also =>
  (use) =>
    parts.flatMap((part) => part(use));

/** Values of options that are harmless, by option; any other one is code to load, or not understood. */
export function only(values: Readonly<Record<string, string>>, doubt: Doubt = "option.loads-code"): Also {
  const known = new Map(
    Object.entries(values).flatMap(([options, words]) => {
      const set: ReadonlySet<string> = new Set(words.split(/\s+/));
      return options.split(" ").map((option) => [option, set] as const);
    }),
  );
  return (use) =>
    [...use.globals, ...use.options].flatMap(({ name, value, span }) => {
      const words = known.get(name);
      if (words === undefined || isAmong(words, value)) return [];
      return [{ kind: "unknown", doubt, what: value?.value ?? name, span }];
    });
}

const isAmong = (words: ReadonlySet<string>, value: Arg | null): boolean =>
  words.has(value?.value ?? "") && value?.kind !== "dynamic";

/** Options whose values must look like this to be harmless. */
export const shaped =
  (shapes: Readonly<Record<string, RegExp>>): Also =>
  (use) =>
    [...use.globals, ...use.options].flatMap(({ name, value, span }) => {
      const shape = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
      if (shape === undefined || value === null || (value.kind === "literal" && shape.test(value.value)))
        return [];
      return [{ kind: "unknown", doubt: "option.loads-code", what: value.value, span }];
    });

/** Formatters that write what they are given, or all that lies below, unless one of these options is there. */
export const writesUnless =
  (...names: readonly string[]): Also =>
  (use) => {
    if (use.options.some(({ name }) => names.includes(name))) return [];
    if (use.operands.length === 0) return [{ kind: "write", path: use.folder }];
    return use.operands.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span }));
  };

/** With one of these options it writes somewhere below the folder where it works. */
export const writesHereWith =
  (...names: readonly string[]): Also =>
  (use) =>
    use.options.some(({ name }) => names.includes(name)) ? [{ kind: "write", path: use.folder }] : [];

/** Words that it hands on: they are judged as those of another entry of the table. */
export const forwards =
  (to: string, skip = 0): Also =>
  (use) => {
    const words = use.operands.slice(skip);
    const [first] = words;
    if (first === undefined) return [];
    return use.command([word(to, first), ...(first.value === "--" ? words.slice(1) : words)]);
  };

/** What is named by its address is fetched. */
export const addresses: Also = ({ operands }) =>
  operands
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/?\//i.test(value) || /^(?:npm|jsr):/.test(value))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

export const word = (value: string, { span }: Pick<Arg, "span">): Arg => ({ kind: "literal", value, span });

/** No option that takes a file of arguments. */
export const noResponseFiles: Also = (use) =>
  use.operands.filter(({ value }) => value.startsWith("@")).map((arg) => use.doubt("option.loads-code", arg));

/** A tool with commands beside its files: these words, in the first place, make or change something. */
export const verbs = (words: string): Also => {
  const known: ReadonlySet<string> = new Set(words.split(/\s+/));
  return (use) => {
    const [first] = use.operands;
    return first !== undefined && known.has(first.value) ? [use.doubt("operand.unknown", first)] : [];
  };
};

/** `NAME=value` sets something, where all else names files. */
export const noSettings: Also = (use) =>
  use.operands.filter(({ value }) => value.includes("=")).map((arg) => use.doubt("operand.unknown", arg));

/** What an option takes whose values end only at the next option: each of them must be one of these. */
export const greedy = (names: string, words: string): Also => {
  const options: ReadonlySet<string> = new Set(names.split(" "));
  const known: ReadonlySet<string> = new Set(words.split(/\s+/));
  return (use) =>
    use.options.flatMap(({ name, span }) => {
      if (!options.has(name)) return [];
      const at = use.args.findIndex((arg) => arg.span === span);
      const rest = use.args.slice(at + 1);
      const end = rest.findIndex(({ value }) => value.startsWith("-"));
      return (end === -1 ? rest : rest.slice(0, end))
        .filter(({ kind, value }) => kind !== "literal" || !known.has(value))
        .map((arg) => use.doubt("option.loads-code", arg));
    });
};
