import { applyEdits, modify, type Node, parseTree } from "jsonc-parser";

const FORMAT = { formattingOptions: { insertSpaces: true, tabSize: 2 } };

/**
 * The text of a config file with one value set. A new key goes below everything that stands on the last key's
 * line: the library's own insertion would take that line's comment along.
 */
export function withValue(text: string, keys: readonly string[], value: unknown): string {
  return insertion(text, keys, value) ?? applyEdits(text, modify(text, [...keys], value, FORMAT));
}

/** undefined where the key is there already, or its object has none yet. */
function insertion(text: string, keys: readonly string[], value: unknown): string | undefined {
  const root = parseTree(text.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
  if (root === undefined) return undefined;
  const [head = "", inner] = keys;
  const held = propertyOf(root, head)?.children?.[1];
  if (held === undefined) return inserted(text, root, head, inner === undefined ? value : { [inner]: value });
  if (inner === undefined || propertyOf(held, inner) !== undefined) return undefined;
  return held.type === "object" ? inserted(text, held, inner, value) : undefined;
}

/** The text with one more item in the list of this key. */
export function withItem(text: string, key: string, value: unknown): string {
  const root = parseTree(text.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
  const list = root === undefined ? undefined : propertyOf(root, key)?.children?.[1];
  const edited = list?.type === "array" ? inserted(text, list, null, value) : undefined;
  return edited ?? withValue(text, [key], [value]);
}

const propertyOf = (node: Node, key: string): Node | undefined =>
  node.children?.find((property) => property.children?.[0]?.value === key);

/** Behind the last entry; `key` is null in a list. */
function inserted(text: string, holder: Node, key: string | null, value: unknown): string | undefined {
  const last = holder.children?.at(-1);
  if (last === undefined) return undefined;
  const end = last.offset + last.length;
  const { comma, lineEnd } = behind(text, end);
  const indent = /(?<=^|\n)[ \t]*$/.exec(text.slice(0, last.offset))?.[0];
  const separator = indent === undefined ? " " : `${text.includes("\r\n") ? "\r\n" : "\n"}${indent}`;
  const shown = JSON.stringify(value, null, indent === undefined ? undefined : 2).replaceAll("\n", separator);
  const property = `${separator}${key === null ? "" : `${JSON.stringify(key)}: `}${shown}`;
  const [first, trailing] = comma ? ["", ","] : [",", ""];
  return `${text.slice(0, end)}${first}${text.slice(end, lineEnd)}${property}${trailing}${text.slice(lineEnd)}`;
}

/** Whether a comma follows, and where the commas and comments of this line end. */
function behind(text: string, offset: number): { readonly comma: boolean; readonly lineEnd: number } {
  const rest = /^(?:[ \t,]|\/\*[^]*?\*\/|\/\/[^\r\n]*)*/.exec(text.slice(offset))?.[0].trimEnd() ?? "";
  const comma = rest.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "").includes(",");
  return { comma, lineEnd: offset + rest.length };
}
