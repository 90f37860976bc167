import { firstLines } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import { tomlRule } from "../rule.ts";
import type { Unproposed, Proposal } from "./propose-policy.ts";

const MAX_TOLD = 50;

/** A file of rules; comments above them name the proposed hosts, and what no rule allows or was refused. */
export function proposalText(
  { rules, allow_domains, left, refused }: Proposal,
  sessions: readonly string[],
): string {
  const of = sessions.length === 1 ? "the session" : "the sessions";
  const lines = [
    `Rules for what ${of} ${sessions.join(", ")} needed; see docs/policy-rules.md.`,
    hostsLine(allow_domains),
    ...listed("Not allowed by any rule here", left),
    ...listed("Refused, so not proposed", refused),
  ];
  const head = lines.map((line) => (line === "" ? "#\n" : `# ${line}\n`)).join("");
  return rules.length === 0 ? head : `${head}\n${rules.map(tomlRule).join("\n")}`;
}

/** Of the characters in grants, only those of patterns are special to a shell. */
function hostsLine(grants: readonly string[]): string {
  if (grants.length === 0) return "No host was needed.";
  const list = grants.join(",");
  return `Hosts that were needed: --allow-domain ${/[*[]/.test(list) ? `'${list}'` : list}`;
}

function listed(name: string, list: readonly Unproposed[]): readonly string[] {
  if (list.length === 0) return [];
  const lines = firstLines(list, MAX_TOLD, ({ what, reason }) => `${cut(what)}: ${cut(reason)}`);
  return ["", `${name}:`, ...lines.map((line) => `  ${line}`)];
}

const MAX_LINE = 200;

/** One line that TOML takes as a comment. */
const cut = (text: string): string => {
  const line = visibleLine(text);
  return line.length <= MAX_LINE ? line : `${line.slice(0, MAX_LINE - 1).toWellFormed()}…`;
};
