import { each, hold, imports, leaf, nameField, note, open, type Rules, rules } from "./rule.ts";

export const JAVA: Rules = rules(
  imports("package_declaration import_declaration module_declaration"),
  note("line_comment block_comment"),
  leaf(
    "method",
    "method_declaration constructor_declaration compact_constructor_declaration annotation_type_element_declaration",
  ),
  leaf("code", "constant_declaration", each(["variable_declarator"], nameField)),
  hold("class", "class_declaration record_declaration"),
  hold("type", "interface_declaration enum_declaration annotation_type_declaration"),
  open("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
);

export const CSHARP: Rules = rules(
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

export const PHP: Rules = rules(
  imports("php_tag declare_statement namespace_use_declaration"),
  note("comment attribute_list"),
  leaf("function", "function_definition"),
  leaf("method", "method_declaration"),
  leaf(
    "code",
    "const_declaration",
    each(["const_element"], (node) => (node.firstNamedChild === null ? [] : [node.firstNamedChild.text])),
  ),
  hold("class", "class_declaration trait_declaration"),
  hold("type", "interface_declaration enum_declaration"),
  open("namespace_definition compound_statement declaration_list enum_declaration_list if_statement"),
);
