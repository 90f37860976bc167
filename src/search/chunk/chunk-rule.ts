import type { Node } from "web-tree-sitter";
import type { ChunkKind } from "../index-words.ts";

/** The names that a node declares; with "." between those of one path. */
export type Names = (node: Node) => readonly string[];

/**
 * What a kind of node is to a chunker.
 * - `imports`: what a file takes from others, and what it says of itself before its code.
 * - `note`: a comment or attribute; it goes with the declaration below it.
 * - `leaf`: a declaration that is not looked into, unless it is too big.
 * - `hold`: a declaration with declarations inside: a class, a module.
 * - `open`: no declaration, but there may be some inside: a block of the preprocessor, an `if` at the top.
 * - `wrap`: it says something about the declaration inside: `export`, `template`, a decorator.
 */
export interface Rule {
  readonly role: "imports" | "note" | "leaf" | "hold" | "open" | "wrap";
  readonly kind: ChunkKind;
  readonly names: Names;
  /** The kind of one node, where the type does not tell it. */
  readonly kindOf?: (node: Node) => ChunkKind;
  /** Only where the text of the node begins like this; elsewhere the other rule holds, or none. Sticky. */
  readonly only?: RegExp;
  readonly otherwise?: Rule | undefined;
  /** Not called by what is around it: a macro. */
  readonly free?: true;
}

export type Rules = Readonly<Record<string, Rule>>;

const NONE: Names = () => [];

/** A name without blanks, and with one notation for all languages: `a::b`, `A\b` and `a.b` are `a.b`. */
export const tidyName = (text: string): string =>
  text.length > 200
    ? ""
    : unargued(text)
        .replaceAll(/\s+/g, "")
        .replaceAll(/::|\\|->/g, ".")
        .replace(/^\.+/, "");

/** Without the arguments of types: `Foo<T>` is `Foo`. Operators keep their signs. */
function unargued(text: string): string {
  if (text.includes("operator")) return text;
  const less = text.replaceAll(/<[^<>]*>/g, "");
  return less === text ? text : unargued(less);
}

const named = (text: string | undefined): readonly string[] => {
  const name = text === undefined ? "" : tidyName(text);
  return name === "" ? [] : [name];
};

export const field =
  (name: string): Names =>
  (node) =>
    named(node.childForFieldName(name)?.text);

export const nameField = field("name");

/** The names of the children of some type, each by its own rule. */
export const each =
  (types: readonly string[], names: Names): Names =>
  (node) =>
    node.namedChildren.flatMap((child) => (types.includes(child.type) ? names(child) : []));

/** All names in a field that may hold several. */
export const allOf =
  (name: string): Names =>
  (node) =>
    node.childrenForFieldName(name).flatMap((child) => (child.isNamed ? named(child.text) : []));

type Made = readonly [types: string, rule: Rule];

const made = (role: Rule["role"], kind: ChunkKind, types: string, names: Names): Made => [
  types,
  { role, kind, names },
];

export const imports = (types: string): Made => made("imports", "imports", types, NONE);
export const note = (types: string): Made => made("note", "code", types, NONE);
export const open = (types: string): Made => made("open", "code", types, NONE);
export const wrap = (types: string): Made => made("wrap", "code", types, NONE);
/** The names of a leaf are in its field `name`, unless it is said how they are found. */
export const leaf = (
  kind: ChunkKind,
  types: string,
  names: Names = nameField,
  kindOf?: Rule["kindOf"],
): Made => {
  const [, rule] = made("leaf", kind, types, names);
  return [types, kindOf === undefined ? rule : { ...rule, kindOf }];
};
export const macro = (types: string, names: Names): Made => [
  types,
  { role: "leaf", kind: "code", names, free: true },
];
export const hold = (kind: ChunkKind, types: string, names: Names = nameField): Made =>
  made("hold", kind, types, names);

/** The same, but only where the text begins so; elsewhere the other rule. */
export const where = (only: RegExp, [types, rule]: Made, otherwise?: Made): Made => [
  types,
  { ...rule, only, otherwise: otherwise?.[1] },
];

export const rules = (...all: readonly Made[]): Rules =>
  Object.fromEntries(all.flatMap(([types, rule]) => types.split(" ").map((type) => [type, rule] as const)));

/** The rule of a node that begins at `at`. */
export function ruleAt(
  all: Rules,
  type: string,
  { text, at }: { text: string; at: number },
): Rule | undefined {
  let rule = all[type];
  while (rule?.only !== undefined) {
    rule.only.lastIndex = at;
    if (rule.only.test(text)) return rule;
    rule = rule.otherwise;
  }
  return rule;
}
