import type { Node } from "web-tree-sitter";
import type { ChunkKind } from "../search-store.ts";

/** Returns the names that a node declares; "." joins the parts of a qualified name. */
type Names = (node: Node) => readonly string[];

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
const tidyName = (text: string): string =>
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

const field =
  (name: string): Names =>
  (node) =>
    tidyNames(node.childForFieldName(name)?.text);

const nameField = field("name");

/** The names of the children with one of these types, each found by `names`. */
const namesOfChildren =
  (types: readonly string[], names: Names): Names =>
  (node) =>
    node.namedChildren.flatMap((child) => (types.includes(child.type) ? names(child) : []));

/** All names in a field that may have several values. */
const allOf =
  (name: string): Names =>
  (node) =>
    node.childrenForFieldName(name).flatMap((child) => (child.isNamed ? tidyNames(child.text) : []));

type RuleEntry = readonly [types: string, rule: Rule];

const ruleEntry = (role: Rule["role"], kind: ChunkKind, types: string, names: Names): RuleEntry => [
  types,
  { role, kind, names },
];

const imports = (types: string): RuleEntry => ruleEntry("imports", "imports", types, NONE);
const note = (types: string): RuleEntry => ruleEntry("note", "code", types, NONE);
const open = (types: string): RuleEntry => ruleEntry("open", "code", types, NONE);
const wrap = (types: string): RuleEntry => ruleEntry("wrap", "code", types, NONE);
/** A leaf has its names in its field `name`, unless `names` finds them elsewhere. */
const leaf = (
  kind: ChunkKind,
  types: string,
  names: Names = nameField,
  kindOf?: Rule["kindOf"],
): RuleEntry => {
  const [, rule] = ruleEntry("leaf", kind, types, names);
  return [types, kindOf === undefined ? rule : { ...rule, kindOf }];
};
const macro = (types: string, names: Names): RuleEntry => [
  types,
  { role: "leaf", kind: "code", names, free: true },
];
const hold = (kind: ChunkKind, types: string, names: Names = nameField): RuleEntry =>
  ruleEntry("hold", kind, types, names);

/** Restricts a rule to nodes whose text starts with `only`; elsewhere `otherwise` applies. */
const restrictTo = (only: RegExp, [types, rule]: RuleEntry, otherwise?: RuleEntry): RuleEntry => [
  types,
  { ...rule, only, otherwise: otherwise?.[1] },
];

const rules = (...all: readonly RuleEntry[]): Rules =>
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

const JAVA: Rules = rules(
  imports("package_declaration import_declaration module_declaration"),
  note("line_comment block_comment"),
  leaf(
    "method",
    "method_declaration constructor_declaration compact_constructor_declaration annotation_type_element_declaration",
  ),
  leaf("code", "constant_declaration", namesOfChildren(["variable_declarator"], nameField)),
  hold("class", "class_declaration record_declaration"),
  hold("type", "interface_declaration enum_declaration annotation_type_declaration"),
  open("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
);

const CSHARP: Rules = rules(
  imports(
    "using_directive extern_alias_directive file_scoped_namespace_declaration preproc_nullable preproc_pragma global_attribute",
  ),
  note("comment"),
  leaf(
    "method",
    "method_declaration constructor_declaration destructor_declaration operator_declaration indexer_declaration event_declaration conversion_operator_declaration",
  ),
  leaf("method", "property_declaration"),
  leaf("function", "local_function_statement"),
  leaf("type", "delegate_declaration enum_declaration"),
  hold("class", "class_declaration struct_declaration record_declaration record_struct_declaration"),
  hold("type", "interface_declaration"),
  open("namespace_declaration declaration_list preproc_if preproc_region preproc_else global_statement"),
);

const PHP: Rules = rules(
  imports("php_tag declare_statement namespace_use_declaration"),
  note("comment attribute_list"),
  leaf("function", "function_definition"),
  leaf("method", "method_declaration"),
  leaf(
    "code",
    "const_declaration",
    namesOfChildren(["const_element"], (node) =>
      node.firstNamedChild === null ? [] : [node.firstNamedChild.text],
    ),
  ),
  hold("class", "class_declaration trait_declaration"),
  hold("type", "interface_declaration enum_declaration"),
  open("namespace_definition compound_statement declaration_list enum_declaration_list if_statement"),
);

/** `A = 1` and `a, b = 1, 2`, but not assignments to attributes or subscripts. */
const assigned: Names = (node) => {
  const left = node.childForFieldName("left");
  if (left === null) return [];
  const parts = left.type === "identifier" ? [left] : left.namedChildren;
  return parts.flatMap((part) =>
    part.type === "identifier" && left.type !== "attribute" && left.type !== "subscript" ? [part.text] : [],
  );
};

const PYTHON: Rules = rules(
  imports("import_statement import_from_statement future_import_statement"),
  note("comment"),
  wrap("decorated_definition expression_statement"),
  leaf("function", "function_definition"),
  leaf("code", "assignment", assigned),
  leaf("type", "type_alias_statement", field("left")),
  hold("class", "class_definition"),
  open(
    "if_statement try_statement with_statement block else_clause except_clause finally_clause elif_clause",
  ),
);

/** Ruby: constants only; other top-level assignments are plain steps. */
const constant: Names = (node) =>
  node.childForFieldName("left")?.type === "constant" ? field("left")(node) : [];

/** Ruby calls that take definitions. */
const DEFINITION_CALLS =
  /(?:included|prepended|class_methods|concerning|private|protected|public|module_function|private_class_method)\b/y;

const RUBY: Rules = rules(
  restrictTo(
    /(?:require|require_relative|load|autoload)\b/y,
    imports("call"),
    restrictTo(DEFINITION_CALLS, open("call")),
  ),
  note("comment"),
  leaf("method", "method singleton_method"),
  leaf("code", "assignment", constant),
  hold("class", "class module"),
  open("singleton_class body_statement argument_list do_block block if unless begin"),
);

const PATH = /^[\w$.#]+$/;

/** The name under which `module.exports.a`, `exports.a` or `A.prototype.b` is called. */
const assignedFunction = (text: string): string => {
  const name = tidyName(text)
    .replace(/^(?:module\.)?exports\.|^this\./, "")
    .replace(".prototype.", ".");
  return PATH.test(name) && name !== "module.exports" && name !== "exports" ? name : "";
};

const BINDING_TYPES = new Set(["identifier", "shorthand_property_identifier_pattern"]);

/** The names that `a`, `{ b, c: d }` or `[e]` binds, one level deep. */
function boundNames(pattern: Node | null): readonly string[] {
  if (pattern === null) return [];
  if (pattern.type === "identifier") return [pattern.text];
  return pattern.namedChildren.flatMap((child) => {
    const target = child.type === "pair_pattern" ? child.childForFieldName("value") : child;
    return target !== null && BINDING_TYPES.has(target.type) ? [target.text] : [];
  });
}

const variables: Names = (node) =>
  node.namedChildren.flatMap((child) =>
    child.type === "variable_declarator" ? boundNames(child.childForFieldName("name")) : [],
  );

const FUNCTIONS = new Set(["arrow_function", "function_expression", "generator_function", "class"]);

const isFunction = (node: Node | null): boolean => FUNCTIONS.has(node?.type ?? "");

const kindOfVariables = (node: Node): ChunkKind =>
  node.namedChildren.some((child) => isFunction(child.childForFieldName("value"))) ? "function" : "code";

const kindOf =
  (field: string, kind: ChunkKind) =>
  (node: Node): ChunkKind =>
    isFunction(node.childForFieldName(field)) ? kind : "code";

/** Class fields that hold functions; other fields are found in the text of the class. */
const functionField: Names = (node) => (isFunction(node.childForFieldName("value")) ? nameField(node) : []);

const assignment: Names = (node) => {
  const left = node.childForFieldName("left")?.text ?? "";
  const name = left.length > 100 ? "" : assignedFunction(left);
  return name === "" ? [] : [name];
};

const moduleName: Names = (node) => field("name")(node).map((name) => name.replaceAll(/["'`]/g, ""));

const VARIABLES = "lexical_declaration variable_declaration";
const REQUIRE = /(?:const|let|var)\s+[^=;]{1,300}=\s*require\s*\(/y;

const SCRIPT: Rules = rules(
  imports("import_statement hash_bang_line"),
  note("comment decorator"),
  restrictTo(/export\s*(?:type\s*)?[{*]/y, imports("export_statement"), wrap("export_statement")),
  wrap("ambient_declaration expression_statement"),
  leaf("function", "function_declaration generator_function_declaration function_signature"),
  leaf("method", "method_definition method_signature abstract_method_signature"),
  restrictTo(REQUIRE, imports(VARIABLES), leaf("code", VARIABLES, variables, kindOfVariables)),
  leaf("code", "public_field_definition field_definition", functionField, kindOf("value", "method")),
  leaf("code", "assignment_expression", assignment, kindOf("right", "function")),
  leaf("type", "type_alias_declaration enum_declaration interface_declaration"),
  hold("class", "class_declaration abstract_class_declaration"),
  hold("code", "internal_module module", moduleName),
  open("if_statement statement_block else_clause class_body"),
);

/** Go: `func (s *Server) Handle()` is `Server.Handle`. */
const method: Names = (node) => {
  const receiver = node.childForFieldName("receiver")?.text ?? "";
  const type = /([\p{L}_][\p{L}\p{N}_]*)\s*(?:\[[^\]]*\])?\s*,?\s*\)$/u.exec(receiver)?.[1];
  return nameField(node).map((name) => (type === undefined ? name : `${type}.${name}`));
};

const constants = namesOfChildren(["const_spec"], allOf("name"));
const systemVariables: Names = (node) => [
  ...namesOfChildren(["var_spec"], allOf("name"))(node),
  ...namesOfChildren(["var_spec_list"], namesOfChildren(["var_spec"], allOf("name")))(node),
];

const GO: Rules = rules(
  imports("package_clause import_declaration"),
  note("comment"),
  leaf("function", "function_declaration"),
  leaf("method", "method_declaration", method),
  leaf("type", "type_declaration", namesOfChildren(["type_spec", "type_alias"], nameField)),
  leaf("code", "const_declaration", constants),
  leaf("code", "var_declaration", systemVariables),
);

/** Rust: both `impl Foo<T>` and `impl Display for Foo<T>` belong to `Foo`. */
const implemented: Names = (node) =>
  field("type")(node).map((name) => name.slice(name.lastIndexOf(".") + 1).replace(/^&(?:mut)?/, ""));

const RUST: Rules = rules(
  imports("use_declaration extern_crate_declaration inner_attribute_item"),
  note("line_comment block_comment attribute_item"),
  leaf("function", "function_item function_signature_item macro_definition"),
  leaf("type", "struct_item enum_item union_item type_item"),
  leaf("code", "const_item static_item"),
  hold("class", "trait_item"),
  hold("class", "impl_item", implemented),
  hold("code", "mod_item"),
  open("foreign_mod_item declaration_list"),
);

/** C and C++: the name at the end of a chain of declarators. */
function declaredName(node: Node | null): string {
  let inner = node;
  for (let step = 0; inner !== null && step < 12; step += 1) {
    if (/identifier$|_name$|operator_cast|template_function/.test(inner.type))
      return inner.type === "operator_cast" ? castName(inner.text) : tidyName(inner.text);
    inner =
      inner.childForFieldName("declarator") ??
      inner.namedChildren.find((child) => /declarator$|identifier$/.test(child.type)) ??
      null;
  }
  return "";
}

/** `operator bool`, without its parameters. */
const castName = (text: string): string =>
  text
    .replace(/\s*\(.*$/s, "")
    .replaceAll(/\s+/g, " ")
    .slice(0, 100);

const declarators: Names = (node) => {
  const type = node.childForFieldName("type");
  const inner = type?.childForFieldName("body") ? nameField(type) : [];
  return [...inner, ...node.childrenForFieldName("declarator").map(declaredName)].filter(
    (name) => name !== "",
  );
};

/** The fields of a class that are functions. */
const members: Names = (node) =>
  node
    .childrenForFieldName("declarator")
    .flatMap((child) => (isSystemFunction(child) ? [declaredName(child)] : []));

function isSystemFunction(node: Node): boolean {
  let inner: Node | null = node;
  for (let step = 0; inner !== null && step < 6; step += 1) {
    if (inner.type === "function_declarator") return true;
    inner =
      inner.childForFieldName("declarator") ??
      inner.namedChildren.find((child) => child.type.endsWith("declarator")) ??
      null;
  }
  return false;
}

/** Names of namespaces up to this length qualify every name inside. */
const NAMESPACE = 16;
const namespaceName: Names = (node) => nameField(node).filter((name) => name.length <= NAMESPACE);

/** A macro without a value is no name: it guards a header or marks a feature as present. */
const defined: Names = (node) => (node.childForFieldName("value") === null ? [] : nameField(node));

const C: Rules = rules(
  imports("preproc_include using_declaration"),
  note("comment attribute_declaration"),
  wrap("template_declaration"),
  leaf("function", "function_definition", declarators),
  macro("preproc_function_def", nameField),
  macro("preproc_def", defined),
  leaf("code", "concept_definition"),
  leaf("code", "declaration", declarators),
  leaf("code", "field_declaration", members),
  leaf("type", "type_definition", declarators),
  leaf("type", "enum_specifier alias_declaration union_specifier"),
  hold("class", "class_specifier struct_specifier"),
  hold("code", "namespace_definition", namespaceName),
  open(
    "preproc_ifdef preproc_if preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list field_declaration_list",
  ),
);

/** How a language is parsed: the name of its grammar in the package, and the rules for its nodes. */
interface Grammar {
  readonly wasm: string;
  readonly rules: Rules;
}

/** The languages that are cut by syntax. C is parsed with the grammar of C++. */
export const GRAMMARS: ReadonlyMap<string, Grammar> = new Map([
  ["typescript", { wasm: "typescript", rules: SCRIPT }],
  ["tsx", { wasm: "tsx", rules: SCRIPT }],
  ["javascript", { wasm: "javascript", rules: SCRIPT }],
  ["python", { wasm: "python", rules: PYTHON }],
  ["go", { wasm: "go", rules: GO }],
  ["rust", { wasm: "rust", rules: RUST }],
  ["java", { wasm: "java", rules: JAVA }],
  ["c", { wasm: "cpp", rules: C }],
  ["cpp", { wasm: "cpp", rules: C }],
  ["csharp", { wasm: "c-sharp", rules: CSHARP }],
  ["ruby", { wasm: "ruby", rules: RUBY }],
  ["php", { wasm: "php", rules: PHP }],
]);
