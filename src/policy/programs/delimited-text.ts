/** Parts of a script between delimiters, as sed and awk have them. All answers are the offset of the closing delimiter, or -1. */

/**
 * End of a regular expression that starts at `from`. -1 where implementations disagree on its bracket expressions. A program
 * without bracket expressions would end it inside of one and refuse the script, so no bracket may stay open.
 */
export function regexEnd(text: string, from: number, delimiter: string): number {
  const end = scan(text, from, delimiter, false);
  return end !== -1 && scan(text, from, delimiter, true) === end ? end : -1;
}

/** End of plain text; a backslash escapes the next character. */
export function plainEnd(text: string, from: number, delimiter: string): number {
  for (let at = from; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") at += 1;
    else if (char === delimiter) return at;
    else if (char === "\n") return -1;
  }
  return -1;
}

/** `escapes`: a backslash inside brackets escapes a closing one, which only some programs support. */
function scan(text: string, from: number, delimiter: string, escapes: boolean): number {
  for (let at = from; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") at += 1;
    else if (char === delimiter) return at;
    else if (char === "\n") return -1;
    else if (char === "[") {
      at = bracketEnd(text, at, escapes);
      if (at === -1) return -1;
    }
  }
  return -1;
}

/** The closing bracket of the expression that opens at `from`. */
function bracketEnd(text: string, from: number, escapes: boolean): number {
  let at = from + 1;
  if (text.charAt(at) === "^") at += 1;
  if (text.charAt(at) === "]") at += 1;
  for (; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "]") return at;
    if (char === "\n") return -1;
    if (char === "\\" && escapes) at += 1;
    else if (char === "[" && CLASSES.has(text.charAt(at + 1))) {
      const close = text.indexOf(`${text.charAt(at + 1)}]`, at + 2);
      if (close === -1) return -1;
      at = close + 1;
    }
  }
  return -1;
}

/** `[:alpha:]`, `[=e=]`, `[.-.]`. */
const CLASSES: ReadonlySet<string> = new Set([":", "=", "."]);
