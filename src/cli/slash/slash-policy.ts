import { commandPolicy, explain, nextCommand } from "../../app/project/policy-commands.ts";
import { workspacePolicy, wordsOfRule } from "../../app/project/policy-context.ts";
import type { DecidedCall } from "../../app/run/chat-controller.ts";
import { firstLines } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import { widthOfStream } from "../../render/tty/columns.ts";
import { explanation } from "../../render/lists/explained.ts";
import { type Output, styleText } from "../../render/tty/output.ts";
import type { SlashCall } from "./chat-commands.ts";

const MAX_RULES = 20;

/** The rules that decide here; with a command, its verdict and the reasons. */
export async function policy({ chat, argument, output }: SlashCall): Promise<string> {
  const { mode, on_ask: onAsk, allow_domains: granted, deny_domains: denied } = chat.settings;
  const context = { ...(await workspacePolicy(chat.host, chat.workspace)), mode, onAsk, granted, denied };
  if (argument !== "") {
    const { allowable, ...told } = await explain(argument, commandPolicy(), context);
    const remedy = allowable ? { remedy: nextCommand("allow", argument, {}) } : {};
    return explanation({ text: argument, ...told, ...remedy }, output).trimEnd();
  }
  const { rules } = context;
  return [
    `mode     ${mode}`,
    `network  ${granted.length === 0 ? "none" : visibleLine(granted.join(", "))}`,
    rules.length === 0
      ? "rules    none from you or the project (docs/policy-rules.md)"
      : `rules    ${rules.length} from you and the project, in addition to those of harness:`,
    ...firstLines(
      rules,
      MAX_RULES,
      (rule) => `${rule.decision.padEnd(5)}  ${visibleLine(`${wordsOfRule(rule)}: ${rule.reason}`)}`,
    ).map((line) => `  ${line}`),
    ...latelyLines(chat.decided.last, output),
  ].join("\n");
}

function latelyLines(last: readonly DecidedCall[], output: Output): readonly string[] {
  if (last.length === 0) return ["", "Nothing has been asked or denied in this chat so far."];
  const width = Math.max(MIN_WIDTH, widthOfStream(output) - 2);
  const lines = last.flatMap((call) => {
    const { tool, what, rule, reason } = call;
    const head = `${outcome(call).padEnd(22)}  ${tool} ${what}`;
    return [clipped(head, width), clipped(`    ${reason} (${rule})`, width)];
  });
  return [
    "",
    styleText("bold", "Asked or denied in this chat, the latest last:", { stream: output }),
    ...lines,
  ];
}

const MIN_WIDTH = 30;

function clipped(text: string, width: number): string {
  const line = visibleLine(text);
  return line.length <= width ? line : `${line.slice(0, width - 1).toWellFormed()}…`;
}

const outcome = ({ decision, runs, by }: DecidedCall): string =>
  decision === "deny" ? "denied" : `${decision}: ${runs ? "ran" : "refused"}, ${BY[by]}`;

const BY: Readonly<Record<DecidedCall["by"], string>> = {
  policy: "by the policy",
  mode: "by the mode",
  contained: "contained",
  person: "by you",
  nobody: "nobody to ask",
  hook: "by a hook",
};
