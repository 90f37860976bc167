import type { RuleForm } from "./form.ts";
import { RULE_KEYS } from "./form.ts";

/** The text of a TOML file with rules put at its end; all that stood there stays as it is. */
export function withRules(document: string, rules: readonly RuleForm[]): string {
  const end = document.includes("\r\n") ? "\r\n" : "\n";
  const before = document === "" || document.endsWith("\n") ? document : `${document}${end}`;
  const gap = before.trim() === "" ? "" : end;
  return before + gap + rules.map((rule) => tomlRule(rule).replaceAll("\n", end)).join(end);
}

/** One rule as it stands in a TOML file. */
export function tomlRule(rule: RuleForm): string {
  const given = Object.entries(rule);
  const lines = RULE_KEYS.flatMap((key) => {
    const value: unknown = given.find(([name]) => name === key)?.[1];
    return value === undefined ? [] : [`${key} = ${tomlValue(value)}`];
  });
  return `[[rule]]\n${lines.join("\n")}\n`;
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  // JSON's escapes are TOML's too, but for one character that JSON leaves as it is.
  return JSON.stringify(value).replaceAll("\u007F", String.raw`\u007F`);
}
