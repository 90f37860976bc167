import type { Use } from "../models/model.ts";
import type { Node } from "../shell/syntax.ts";

/** A known text of which something else may have taken a part: what is left of it is not known. */
export const inPart = (input: Use["input"]): Use["input"] => (typeof input === "string" ? input : "unknown");

/** What `echo words` puts into a pipe, where that is plain to see. */
export function echoed(node: Node): Use["input"] | null {
  if (node.kind !== "simple" || node.redirects.length > 0) return null;
  const texts = node.words.map(({ pieces: [piece, ...more] }) =>
    more.length === 0 && piece?.kind === "text" ? piece.text : null,
  );
  const [name, ...words] = texts;
  if ((name !== "echo" && name !== "printf") || words.includes(null) || words[0]?.startsWith("-") === true)
    return null;
  const text = `${words.join(" ")}\n`;
  return { text, span: node.span, ...(/[\\%]/.test(text) ? { rough: true } : {}) };
}
