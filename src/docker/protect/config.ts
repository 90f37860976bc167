/** One line of a git configuration: `section.name` or `section.Sub Section.name`, section and name in lower case. */
export interface ConfigEntry {
  readonly key: string;
  readonly value: string;
}

/** A reading that git itself would refuse ends in `undefined`. Nothing is included, expanded or run. */
export function parseGitConfig(text: string): readonly ConfigEntry[] | undefined {
  const entries: ConfigEntry[] = [];
  let section: string | undefined;
  let rest = text.replace(/^\ufeff/, "");
  for (;;) {
    rest = rest.replace(/^(?:\s|[#;][^\n]*)+/, "");
    if (rest === "") return entries;
    if (rest.startsWith("[")) {
      const header = HEADER.exec(rest);
      if (header === null) return undefined;
      section = sectionName(header);
      rest = rest.slice(header[0].length);
      continue;
    }
    const name = /^([a-z][a-z0-9-]*)[ \t]*/i.exec(rest);
    if (name === null || section === undefined) return undefined;
    const read = readValue(rest.slice(name[0].length));
    if (read === undefined) return undefined;
    entries.push({ key: `${section}.${(name[1] ?? "").toLowerCase()}`, value: read.value });
    rest = read.rest;
  }
}

const HEADER = /^\[([a-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]/i;

const sectionName = (header: RegExpExecArray): string => {
  const [, name = "", sub] = header;
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub.replace(/\\(.)/g, "$1")}`;
};

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b", "\\": "\\", '"': '"' };

/** The value after a name: quotes, escapes, continued lines and comments as git reads them. */
function readValue(text: string): { readonly value: string; readonly rest: string } | undefined {
  if (!text.startsWith("=")) {
    const end = /^[ \t\r]*(?:[#;][^\n]*)?(?:\n|$)/.exec(text);
    return end === null ? undefined : { value: "true", rest: text.slice(end[0].length) };
  }
  let value = "";
  let kept = 0;
  let quoted = false;
  let at = /^=[ \t]*/.exec(text)?.[0].length ?? 1;
  for (; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === "\n" || (char === "\r" && text.charAt(at + 1) === "\n")) break;
    if (char === "\\") {
      at += text.startsWith("\r\n", at + 1) ? 2 : 1;
      const next = text.charAt(at);
      if (next === "\n") continue;
      const escaped = ESCAPES[next];
      if (escaped === undefined) return undefined;
      value += escaped;
      kept = value.length;
    } else if (char === '"') {
      quoted = !quoted;
      kept = value.length;
    } else if (!quoted && (char === "#" || char === ";")) {
      while (at < text.length && text.charAt(at) !== "\n") at++;
      break;
    } else {
      value += char;
      if (quoted || !/\s/.test(char)) kept = value.length;
    }
  }
  return quoted ? undefined : { value: value.slice(0, kept), rest: text.slice(at) };
}
