import type { Node } from "web-tree-sitter";
import type { ChunkKind } from "../../words.ts";
import {
  field,
  hold,
  imports,
  leaf,
  type Names,
  nameField,
  note,
  open,
  type Rules,
  rules,
  tidyName,
  where,
  wrap,
} from "./rule.ts";

const PATH = /^[\w$.#]+$/;

/** `module.exports.a`, `exports.a`, `A.prototype.b` as they are called. */
const assigned = (text: string): string => {
  const name = tidyName(text)
    .replace(/^(?:module\.)?exports\.|^this\./, "")
    .replace(".prototype.", ".");
  return PATH.test(name) && name !== "module.exports" && name !== "exports" ? name : "";
};

const BOUND = new Set(["identifier", "shorthand_property_identifier_pattern"]);

/** `a`, and what `{ b, c: d }` and `[e]` bind, one level deep. */
function bound(pattern: Node | null): readonly string[] {
  if (pattern === null) return [];
  if (pattern.type === "identifier") return [pattern.text];
  return pattern.namedChildren.flatMap((child) => {
    const target = child.type === "pair_pattern" ? child.childForFieldName("value") : child;
    return target !== null && BOUND.has(target.type) ? [target.text] : [];
  });
}

const variables: Names = (node) =>
  node.namedChildren.flatMap((child) =>
    child.type === "variable_declarator" ? bound(child.childForFieldName("name")) : [],
  );

const FUNCTIONS = new Set(["arrow_function", "function_expression", "generator_function", "class"]);

const isFunction = (node: Node | null): boolean => FUNCTIONS.has(node?.type ?? "");

const kindOfVariables = (node: Node): ChunkKind =>
  node.namedChildren.some((child) => isFunction(child.childForFieldName("value"))) ? "function" : "code";

const kindOf =
  (field: string, kind: ChunkKind) =>
  (node: Node): ChunkKind =>
    isFunction(node.childForFieldName(field)) ? kind : "code";

/** Fields of a class that hold functions; the rest is found in the text of the class. */
const functionField: Names = (node) => (isFunction(node.childForFieldName("value")) ? nameField(node) : []);

const assignment: Names = (node) => {
  const left = node.childForFieldName("left")?.text ?? "";
  const name = left.length > 100 ? "" : assigned(left);
  return name === "" ? [] : [name];
};

const moduleName: Names = (node) => field("name")(node).map((name) => name.replaceAll(/["'`]/g, ""));

const VARIABLES = "lexical_declaration variable_declaration";
const REQUIRE = /(?:const|let|var)\s+[^=;]{1,300}=\s*require\s*\(/y;

export const SCRIPT: Rules = rules(
  imports("import_statement hash_bang_line"),
  note("comment decorator"),
  where(/export\s*(?:type\s*)?[{*]/y, imports("export_statement"), wrap("export_statement")),
  wrap("ambient_declaration expression_statement"),
  leaf("function", "function_declaration generator_function_declaration function_signature"),
  leaf("method", "method_definition method_signature abstract_method_signature"),
  where(REQUIRE, imports(VARIABLES), leaf("code", VARIABLES, variables, kindOfVariables)),
  leaf("code", "public_field_definition field_definition", functionField, kindOf("value", "method")),
  leaf("code", "assignment_expression", assignment, kindOf("right", "function")),
  leaf("type", "type_alias_declaration enum_declaration interface_declaration"),
  hold("class", "class_declaration abstract_class_declaration"),
  hold("code", "internal_module module", moduleName),
  open("if_statement statement_block else_clause class_body"),
);
