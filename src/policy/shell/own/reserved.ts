import { BREAK, classOf } from "./chars.ts";
import type { Cursor } from "./cursor.ts";

const WORDS: ReadonlySet<string> = new Set([
  "!",
  "[[",
  "]]",
  "{",
  "}",
  "case",
  "coproc",
  "do",
  "done",
  "elif",
  "else",
  "esac",
  "fi",
  "for",
  "function",
  "if",
  "in",
  "select",
  "then",
  "time",
  "until",
  "while",
]);

const LONGEST = 8;

/** The reserved word at the cursor, unread; empty when there is none. Counts only where a command may begin. */
export function reserved(c: Cursor): string {
  const { text, pos } = c;
  if (!begins(c.peek())) return "";
  const most = Math.min(c.end, pos + LONGEST + 1);
  let at = pos + 1;
  while (at < most && continues(text.charCodeAt(at))) at++;
  if (at === pos + LONGEST + 1 || (at < c.end && (classOf(text.charCodeAt(at)) & BREAK) === 0)) return "";
  const word = text.slice(pos, at);
  return WORDS.has(word) ? word : "";
}

export function isReserved(word: string): boolean {
  return WORDS.has(word);
}

/** The first characters of reserved words. */
function begins(code: number): boolean {
  switch (code) {
    case 33:
    case 91:
    case 93:
    case 123:
    case 125:
      return true;
    default:
      return code >= 99 && code <= 119 && FIRST.includes(String.fromCharCode(code));
  }
}

const FIRST = "cdefistuw";

/** Lower-case letters, and the second bracket. */
function continues(code: number): boolean {
  return (code >= 97 && code <= 122) || code === 91 || code === 93;
}
