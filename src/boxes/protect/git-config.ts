/** One line of a git configuration: `section.name` or `section.Sub Section.name`, section and name in lower case. */
export interface ConfigEntry {
  readonly key: string;
  readonly value: string;
}

/** Undefined for a text that git itself would refuse. Nothing is included, expanded or run. */
export function parseGitConfig(text: string): readonly ConfigEntry[] | undefined {
  const entries: ConfigEntry[] = [];
  // Git accepts a name before the first section; the name has no meaning.
  let section = "";
  let rest = text.replace(/^\ufeff/, "");
  for (;;) {
    rest = rest.replace(/^(?:\s|[#;][^\n]*)+/, "");
    if (rest === "") return entries;
    if (rest.startsWith("[")) {
      const header = HEADER.exec(rest);
      if (header === null) return undefined;
      section = `${sectionName(header)}.`;
      rest = rest.slice(header[0].length);
      continue;
    }
    const name = /^([a-z][a-z0-9-]*)[ \t]*/i.exec(rest);
    if (name === null) return undefined;
    const read = readValue(rest.slice(name[0].length));
    if (read === undefined) return undefined;
    entries.push({ key: `${section}${(name[1] ?? "").toLowerCase()}`, value: read.value });
    rest = read.rest;
  }
}

const HEADER = /^\[([a-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]/i;

const sectionName = (header: RegExpExecArray): string => {
  const [, name = "", sub] = header;
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub.replace(/\\(.)/g, "$1")}`;
};

interface ReadValue {
  readonly value: string;
  readonly rest: string;
}

/** Reads the value after a name: quotes, escapes, continued lines and comments as in git. */
function readValue(text: string): ReadValue | undefined {
  if (text.startsWith("=")) return readText(text.replace(/^=[ \t]*/, ""));
  const end = /^[ \t\r]*(?:[#;][^\n]*)?(?:\n|$)/.exec(text);
  return end === null ? undefined : { value: "true", rest: text.slice(end[0].length) };
}

const ESCAPES = new Map([
  ["\\n", "\n"],
  ["\\t", "\t"],
  ["\\b", "\b"],
  ["\\\\", "\\"],
  ['\\"', '"'],
  ["\\\n", ""],
  ["\\\r\n", ""],
]);

const PIECE = /\\\r\n|\\[^]|"|\n|[#;][^\n"\\]*|[^"\\\n#;]+/y;

function readText(text: string): ReadValue | undefined {
  const piece = new RegExp(PIECE);
  let value = "";
  let kept = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at = piece.lastIndex) {
    const found = piece.exec(text)?.[0];
    const added = meaningOf(found, quoted);
    if (added === undefined) return undefined;
    if (added === END) return { value: value.slice(0, kept), rest: text.slice(at).replace(/^[^\n]+/, "") };
    if (found === '"') quoted = !quoted;
    // Looks at this piece only: earlier pieces were measured before, however many there are.
    const own = quoted || added !== found ? added : added.trimEnd();
    if (own !== "" || quoted || added !== found) kept = value.length + own.length;
    value += added;
  }
  return quoted ? undefined : { value: value.slice(0, kept), rest: "" };
}

const END = Symbol("end of the value");

/** What a piece adds to the value; undefined if git would stop with an error. */
function meaningOf(piece: string | undefined, quoted: boolean): string | typeof END | undefined {
  if (piece === undefined) return undefined;
  if (piece === "\n") return quoted ? undefined : END;
  if (/^[#;]/.test(piece)) return quoted ? piece : END;
  if (piece.startsWith("\\")) return ESCAPES.get(piece);
  return piece === '"' ? "" : piece;
}
