import type { Effect } from "../effects/effect.ts";
import type { Rule } from "./effects.ts";
import type { Places } from "./files.ts";
import { ASKED, CONTAINED, DENIED, HARMLESS, IN_WORKSPACE } from "./ruling.ts";

export type CodeEffect = Extract<Effect, { readonly kind: "code" }>;

export function codeRuling({ from, path, text, by }: CodeEffect, places: Places): Rule {
  switch (from) {
    case "fetched":
      return { id: "code.fetched", reason: `${by} runs what was downloaded`, ...DENIED };
    case "input":
      return {
        id: "code.input",
        reason: `${by} runs what it is given on stdin, which is not known here`,
        ...ASKED,
      };
    case "inline":
      return inline(text ?? "", by);
    case "settings":
      return places.isProject(path)
        ? { id: "code.settings", reason: `${by} obeys the project's settings`, ...HARMLESS }
        : {
            id: "code.elsewhere",
            reason: `${by} obeys settings of another folder than the workspace`,
            ...ASKED,
          };
    case "check":
      return places.isProject(path)
        ? { id: "code.check", reason: `${by} runs the project's own checks`, ...IN_WORKSPACE }
        : { id: "code.elsewhere", reason: `${by} runs code of another folder than the workspace`, ...ASKED };
    case "project":
      return places.isProject(path)
        ? { id: "code.project", reason: `${by} runs code of the project`, ...CONTAINED }
        : { id: "code.elsewhere", reason: `${by} runs code that does not lie in the workspace`, ...ASKED };
  }
}

/** Words of programs that reach further than the workspace. What names none of them is as good as a file of the project. */
const REACHING =
  /\b(?:socket|urllib|requests?|httpx?|aiohttp|ftplib|smtplib|telnetlib|fetch|axios|net|dgram|dns|tls|https|Net::|LWP|curl|wget|subprocess|popen|system|spawn\w*|exec\w*|eval|compile|__import__|child_process|fork|kill|ctypes|ffi|dlopen|import_module|require_relative|open3|shell_exec|passthru|proc_open|environ|process\.env)\b|`|%x|["'\s](?:\/|~|\.\.)/;

function inline(text: string, by: string): Rule {
  const reaching = text === "" || REACHING.test(text);
  return reaching
    ? { id: "code.inline", reason: `${by} runs a program given on the command line`, ...ASKED }
    : { id: "code.inline", reason: `${by} runs a small program given on the command line`, ...CONTAINED };
}
