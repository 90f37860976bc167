import type { List, Node, Span, Word } from "../syntax.ts";

/** What stands where nothing could be read. */
export const nothing = (span: Span): List => ({ kind: "list", span, items: [] });

/** `|&`: its errors go the same way. */
export function withErrors(node: Node): Node {
  if (node.kind !== "simple" && node.kind !== "compound") return node;
  const target: Word = { span: node.span, pieces: [{ kind: "text", text: "1" }] };
  return {
    ...node,
    redirects: [...node.redirects, { span: node.span, operator: ">&", descriptor: 2, target }],
  };
}
