import type { Node } from "web-tree-sitter";
import type { ChunkKind } from "../index-words.ts";

/** Returns the names that a node declares; "." joins the parts of a qualified name. */
export type Names = (node: Node) => readonly string[];

/**
 * How the chunker treats a kind of node.
 * - `imports`: imports, and what a file says about itself before its code.
 * - `note`: a comment or attribute; it goes with the declaration below it.
 * - `leaf`: a declaration whose inside is visited only if it is too big.
 * - `hold`: a declaration that contains declarations: a class, a module.
 * - `open`: not a declaration, but may contain some: a preprocessor block, a top-level `if`.
 * - `wrap`: modifies the declaration inside: `export`, `template`, a decorator.
 */
export interface Rule {
  readonly role: "imports" | "note" | "leaf" | "hold" | "open" | "wrap";
  readonly kind: ChunkKind;
  readonly names: Names;
  /** Determines the kind of a node if its type alone does not. */
  readonly kindOf?: (node: Node) => ChunkKind;
  /**
   * A sticky pattern: the rule applies only where the text of the node starts with it; elsewhere `otherwise` applies.
   */
  readonly only?: RegExp;
  readonly otherwise?: Rule | undefined;
  /** A macro: its name is not qualified by the surrounding scope. */
  readonly free?: true;
}

export type Rules = Readonly<Record<string, Rule>>;

const NONE: Names = () => [];

/** A name without blanks, in one notation for all languages: `A::b`, `A\b` and `A->b` become `A.b`. */
export const tidyName = (text: string): string =>
  text.length > 200
    ? ""
    : withoutTypeArguments(text)
        .replaceAll(/\s+/g, "")
        .replaceAll(/::|\\|->/g, ".")
        .replace(/^\.+/, "");

/** Removes type arguments: `Foo<T>` becomes `Foo`. Names of operators stay as they are. */
function withoutTypeArguments(text: string): string {
  if (text.includes("operator")) return text;
  const less = text.replaceAll(/<[^<>]*>/g, "");
  return less === text ? text : withoutTypeArguments(less);
}

const tidyNames = (text: string | undefined): readonly string[] => {
  const name = text === undefined ? "" : tidyName(text);
  return name === "" ? [] : [name];
};

export const field =
  (name: string): Names =>
  (node) =>
    tidyNames(node.childForFieldName(name)?.text);

export const nameField = field("name");

/** The names of the children with one of these types, each found by `names`. */
export const each =
  (types: readonly string[], names: Names): Names =>
  (node) =>
    node.namedChildren.flatMap((child) => (types.includes(child.type) ? names(child) : []));

/** All names in a field that may have several values. */
export const allOf =
  (name: string): Names =>
  (node) =>
    node.childrenForFieldName(name).flatMap((child) => (child.isNamed ? tidyNames(child.text) : []));

type RuleEntry = readonly [types: string, rule: Rule];

const ruleEntry = (role: Rule["role"], kind: ChunkKind, types: string, names: Names): RuleEntry => [
  types,
  { role, kind, names },
];

export const imports = (types: string): RuleEntry => ruleEntry("imports", "imports", types, NONE);
export const note = (types: string): RuleEntry => ruleEntry("note", "code", types, NONE);
export const open = (types: string): RuleEntry => ruleEntry("open", "code", types, NONE);
export const wrap = (types: string): RuleEntry => ruleEntry("wrap", "code", types, NONE);
/** A leaf has its names in its field `name`, unless `names` finds them elsewhere. */
export const leaf = (
  kind: ChunkKind,
  types: string,
  names: Names = nameField,
  kindOf?: Rule["kindOf"],
): RuleEntry => {
  const [, rule] = ruleEntry("leaf", kind, types, names);
  return [types, kindOf === undefined ? rule : { ...rule, kindOf }];
};
export const macro = (types: string, names: Names): RuleEntry => [
  types,
  { role: "leaf", kind: "code", names, free: true },
];
export const hold = (kind: ChunkKind, types: string, names: Names = nameField): RuleEntry =>
  ruleEntry("hold", kind, types, names);

/** Restricts a rule to nodes whose text starts with `only`; elsewhere `otherwise` applies. */
export const where = (only: RegExp, [types, rule]: RuleEntry, otherwise?: RuleEntry): RuleEntry => [
  types,
  { ...rule, only, otherwise: otherwise?.[1] },
];

export const rules = (...all: readonly RuleEntry[]): Rules =>
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
