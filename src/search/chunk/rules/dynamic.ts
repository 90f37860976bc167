import {
  field,
  hold,
  imports,
  leaf,
  type Names,
  note,
  open,
  type Rules,
  rules,
  where,
  wrap,
} from "./rule.ts";

/** `A = 1` and `a, b = 1, 2`, but not what is set on something else. */
const assigned: Names = (node) => {
  const left = node.childForFieldName("left");
  if (left === null) return [];
  const parts = left.type === "identifier" ? [left] : left.namedChildren;
  return parts.flatMap((part) =>
    part.type === "identifier" && left.type !== "attribute" && left.type !== "subscript" ? [part.text] : [],
  );
};

export const PYTHON: Rules = rules(
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

/** Ruby: constants only; other assignments at the top are steps. */
const constant: Names = (node) =>
  node.childForFieldName("left")?.type === "constant" ? field("left")(node) : [];

/** Calls that take definitions. */
const OPENED =
  /(?:included|prepended|class_methods|concerning|private|protected|public|module_function|private_class_method)\b/y;

export const RUBY: Rules = rules(
  where(/(?:require|require_relative|load|autoload)\b/y, imports("call"), where(OPENED, open("call"))),
  note("comment"),
  leaf("method", "method singleton_method"),
  leaf("code", "assignment", constant),
  hold("class", "class module"),
  open("singleton_class body_statement argument_list do_block block if unless begin"),
);
