import {
  each,
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

export const RUBY: Rules = rules(
  note("comment"),
  leaf("method", "method singleton_method"),
  leaf("code", "assignment", constant),
  hold("class", "class module"),
  open("singleton_class body_statement if unless begin"),
);

export const BASH: Rules = rules(
  note("comment"),
  leaf("function", "function_definition"),
  leaf("code", "variable_assignment"),
  leaf("code", "declaration_command", each(["variable_assignment"], nameField)),
  open("if_statement"),
);
