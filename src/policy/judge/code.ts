import type { Effect } from "../effects/effect.ts";
import type { Rule } from "./effects.ts";
import type { Places } from "./files.ts";
import { ASKED, CONTAINED, DENIED, HARMLESS, IN_WORKSPACE } from "./ruling.ts";

export type CodeEffect = Extract<Effect, { readonly kind: "code" }>;

export function codeRuling({ from, path, text, followed, by }: CodeEffect, places: Places): Rule {
  switch (from) {
    case "fetched":
      return { id: "code.fetched", reason: `${by} runs what was downloaded`, ...DENIED };
    case "input":
      return {
        id: "code.input",
        reason:
          text === undefined && followed !== true
            ? `${by} runs what it is given on stdin, which is not known here`
            : `${by} runs what it is given on stdin`,
        ...(followed === true || (text !== undefined && staysInside(text, places)) ? CONTAINED : ASKED),
      };
    case "inline":
      return inline(text ?? "", by, places);
    case "settings":
      return places.isProject(path)
        ? { id: "code.settings", reason: `${by} obeys the project's settings`, ...HARMLESS }
        : elsewhere(path, `${by} obeys settings of another folder than the workspace`, places);
    case "check":
      return places.isProject(path)
        ? { id: "code.check", reason: `${by} runs the project's own checks`, ...IN_WORKSPACE }
        : elsewhere(path, `${by} runs code of another folder than the workspace`, places);
    case "project":
      return places.isProject(path)
        ? { id: "code.project", reason: `${by} runs code of the project`, ...CONTAINED }
        : elsewhere(path, `${by} runs code that does not lie in the workspace`, places);
  }
}

/** What others wrote inside of the workspace, and temporary files, the box holds as well. */
function elsewhere(path: CodeEffect["path"], reason: string, places: Places): Rule {
  const kind = path === null ? "outside" : places.facts(path, "read").kind;
  const worth = kind === "workspace" || kind === "temp" ? CONTAINED : ASKED;
  return { id: "code.elsewhere", reason, ...worth };
}

/** Words of programs that reach further than the workspace. What names none of them is as good as a file of the project. */
const REACHING =
  /\b(?:socket|urllib|requests?|httpx?|aiohttp|ftplib|smtplib|telnetlib|fetch|axios|net|dgram|dns|tls|https|Net::|LWP|curl|wget|subprocess|popen|system|spawn\w*|exec(?!utor\b)\w*|eval|(?<!\bre\.)compile|__import__|child_process|fork|kill|ctypes|ffi|dlopen|import_module|require_relative|open3|shell_exec|passthru|proc_open|environ|process\.env)\b|`|%x/;
/** A path that leads out. A slash between blanks divides. */
const OUT = /["'\s](?:\/(?!\s)|~|\.\.)/;
/** What a database is told. */
const STATEMENT = /(?<!\bos)\.execute(?:many|script)?(?=\()/g;
const TEMPORARY = /(["'])\/tmp\/(?!\.\.)(?=[\w.-]*(?:\/(?!\.\.)[\w.-]+)*\1)/g;

function staysInside(text: string, { workspace }: Places): boolean {
  const told = text.includes("sqlite3") ? text.replaceAll(STATEMENT, ".") : text;
  if (told === "" || REACHING.test(told)) return false;
  const rest = told
    .replaceAll(TEMPORARY, "$1")
    .replaceAll(`"${workspace}/`, '"')
    .replaceAll(`'${workspace}/`, "'");
  return !OUT.test(rest);
}

function inline(text: string, by: string, places: Places): Rule {
  return staysInside(text, places)
    ? { id: "code.inline", reason: `${by} runs a small program given on the command line`, ...CONTAINED }
    : { id: "code.inline", reason: `${by} runs a program given on the command line`, ...ASKED };
}
