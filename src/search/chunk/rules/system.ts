import type { Node } from "web-tree-sitter";
import {
  allOf,
  each,
  field,
  hold,
  imports,
  leaf,
  macro,
  type Names,
  nameField,
  note,
  open,
  type Rules,
  rules,
  tidyName,
  wrap,
} from "./rule.ts";

/** Go: `func (s *Server) Handle()` is `Server.Handle`. */
const method: Names = (node) => {
  const receiver = node.childForFieldName("receiver")?.text ?? "";
  const type = /([\p{L}_][\p{L}\p{N}_]*)\s*(?:\[[^\]]*\])?\s*,?\s*\)$/u.exec(receiver)?.[1];
  return nameField(node).map((name) => (type === undefined ? name : `${type}.${name}`));
};

const constants = each(["const_spec"], allOf("name"));
const variables: Names = (node) => [
  ...each(["var_spec"], allOf("name"))(node),
  ...each(["var_spec_list"], each(["var_spec"], allOf("name")))(node),
];

export const GO: Rules = rules(
  imports("package_clause import_declaration"),
  note("comment"),
  leaf("function", "function_declaration"),
  leaf("method", "method_declaration", method),
  leaf("type", "type_declaration", each(["type_spec", "type_alias"], nameField)),
  leaf("code", "const_declaration", constants),
  leaf("code", "var_declaration", variables),
);

/** Rust: both `impl Foo<T>` and `impl Display for Foo<T>` are of `Foo`. */
const implemented: Names = (node) =>
  field("type")(node).map((name) => name.slice(name.lastIndexOf(".") + 1).replace(/^&(?:mut)?/, ""));

export const RUST: Rules = rules(
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
function declared(node: Node | null): string {
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
  return [...inner, ...node.childrenForFieldName("declarator").map(declared)].filter((name) => name !== "");
};

/** Of the fields of a class those that are functions. */
const members: Names = (node) =>
  node.childrenForFieldName("declarator").flatMap((child) => (isFunction(child) ? [declared(child)] : []));

function isFunction(node: Node): boolean {
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

/** Names of namespaces that are short enough to stand before every name inside. */
const NAMESPACE = 16;
const space: Names = (node) => nameField(node).filter((name) => name.length <= NAMESPACE);

/** Without a value it guards a header, or says that something is there. */
const defined: Names = (node) => (node.childForFieldName("value") === null ? [] : nameField(node));

export const C: Rules = rules(
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
  hold("code", "namespace_definition", space),
  open(
    "preproc_ifdef preproc_if preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list field_declaration_list",
  ),
);
