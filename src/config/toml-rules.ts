import { parse, TomlError } from "smol-toml";
import type { ConfigDocument } from "./load-config.ts";
import { configError } from "./setting-words.ts";

/** A TOML file of `[[table]]` entries as a value, with the line of each key. */
export function parseTomlDocument(file: string, text: string, table: string): ConfigDocument {
  const body = text.replace(/^\uFEFF/, "");
  const value = parsed(file, body);
  const { headers, keys } = tomlLines(body, table);
  const at = ([head, index, key]: readonly PropertyKey[]): string => {
    const entry = typeof index === "number" && headers.length > index ? index : -1;
    const line =
      keys.get(`${entry} ${String(key)}`) ?? headers[entry] ?? keys.get(`-1 ${String(head)}`) ?? headers[0];
    return line === undefined ? file : `${file}:${line}`;
  };
  return { value, at };
}

function parsed(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    const [firstLine = ""] = thrown.message.split("\n");
    const message = firstLine.replace(/^Invalid TOML document: /, "");
    throw configError(`${file}:${thrown.line}:${thrown.column}`, `${message}; expected TOML`);
  }
}

/** Line numbers in a TOML text, counted from 1; the parser only returns values. */
interface TomlLines {
  /** Lines of the `[[rule]]` headers. */
  readonly headers: readonly number[];
  /** Lines of the keys, by the index of the header above (-1: before all) and the name as written. */
  readonly keys: ReadonlyMap<string, number>;
}

/** The text is known to be valid TOML: errors that the parser would refuse are not considered. */
function tomlLines(text: string, table: string): TomlLines {
  const headers: number[] = [];
  const keys = new Map<string, number>();
  const header = new RegExp(String.raw`^\s*\[\[\s*["']?${table}["']?\s*\]\]`);
  let open: OpenState = NOTHING;
  for (const [index, line] of text.split("\n").entries()) {
    if (open.quote === "" && open.depth === 0) {
      if (header.test(line)) headers.push(index + 1);
      const key = /^\s*["']?([\w-]+)["']?\s*=/.exec(line)?.[1];
      if (key !== undefined) keys.set(`${headers.length - 1} ${key}`, index + 1);
    }
    open = openAfter(line, open);
  }
  return { headers, keys };
}

/** What is still open at the end of a line: a multi-line text, and a number of brackets. */
interface OpenState {
  readonly quote: string;
  readonly depth: number;
}

const NOTHING: OpenState = { quote: "", depth: 0 };

function openAfter(line: string, before: OpenState): OpenState {
  let { quote, depth } = before;
  const tokens = new RegExp(TOKEN, "y");
  for (let at = 0; at < line.length;) {
    if (quote !== "") {
      const end = endOfQuote(line, at, quote);
      if (end === -1) break;
      [at, quote] = [end, ""];
      continue;
    }
    tokens.lastIndex = at;
    const token = tokens.exec(line)?.[0] ?? " ";
    if (token === "#") break;
    if (token === '"""' || token === "'''") quote = token;
    depth += DEPTHS[token] ?? 0;
    at += token.length;
  }
  return { quote, depth };
}

const DEPTHS: Readonly<Record<string, number>> = { "[": 1, "{": 1, "]": -1, "}": -1 };

/** A multi-line quote, a one-line text, a bracket, a comment, or a run of anything else. */
const TOKEN = /"""|'''|"(?:[^"\\]|\\.)*"|'[^']*'|[[\]{}]|#|[^"'[\]{}#]+/;

/** The position after the quote that ends the text; a text may end with quotes of its own. */
function endOfQuote(line: string, from: number, quote: string): number {
  const ends = quote === '"""' ? /(?:[^"\\]|\\.|"(?!""))*?"{3,5}/y : /[^]*?'{3,5}/y;
  ends.lastIndex = from;
  return ends.test(line) ? ends.lastIndex : -1;
}
