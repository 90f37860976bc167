import { Flags } from "@oclif/core";
import type { LimitsGiven } from "../agent/limits.ts";
import { ON_ASK } from "../config/settings-schema.ts";
import { DURATION_FORM, parseDuration } from "../core/bounds.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { INTENTS } from "../core/events.ts";

const BUDGET = "BUDGET";

/** What `run` takes beside the settings. */
export const runFlags = {
  "max-turns": Flags.string({ description: "requests to the model (40)", helpGroup: BUDGET, helpValue: "N" }),
  "max-time": Flags.string({ description: "time for all of it", helpGroup: BUDGET, helpValue: "30m" }),
  "max-tokens": Flags.string({ description: "tokens, read and written", helpGroup: BUDGET, helpValue: "N" }),
  "max-cost": Flags.string({
    description: "cost, by the setting prices",
    helpGroup: BUDGET,
    helpValue: "X",
  }),
  "max-tool-calls": Flags.string({ description: "calls of tools", helpGroup: BUDGET, helpValue: "N" }),
  intent: Flags.option({
    options: INTENTS,
    description: "what is wanted, instead of a guess: an answer, an answer about the repository, a change",
    helpGroup: "TASK",
  })(),
  "output-schema": Flags.string({
    description: "JSON Schema that the answer has to fit",
    helpGroup: "TASK",
    helpValue: "FILE",
  }),
  continue: Flags.boolean({
    description: "go on with the last session of this folder",
    helpGroup: "TASK",
    exclusive: ["resume"],
  }),
  resume: Flags.string({ description: "go on with this session", helpGroup: "TASK", helpValue: "ID" }),
  "on-ask": Flags.option({
    options: ON_ASK,
    description:
      "what becomes of an ask: refused, run if it is contained, or that and else the run waits for you",
    helpGroup: "TASK",
  })(),
  "park-timeout": Flags.string({
    description: "how long the box of a run that waits is kept as it is; 0: not at all",
    helpGroup: "TASK",
    helpValue: "24h",
  }),
  fork: Flags.boolean({
    description: "with --continue or --resume: in a session of its own, the earlier one stays as it is",
    helpGroup: "TASK",
  }),
  strict: Flags.boolean({ description: "end with 4 after any refusal", helpGroup: "TASK" }),
};

export interface BudgetFlags {
  readonly "max-time"?: string | undefined;
  readonly "max-tokens"?: string | undefined;
  readonly "max-cost"?: string | undefined;
  readonly "max-tool-calls"?: string | undefined;
}

/** Turns are a setting, which the flag has already set. */
export function limitsFrom(flags: BudgetFlags, turns: number): LimitsGiven {
  const time = flags["max-time"];
  const ms = time === undefined ? undefined : parseDuration(time);
  if (time !== undefined && (ms === undefined || ms === 0))
    throw wrong("max-time", time, DURATION_FORM, "30m");
  const tokens = wholeFrom("max-tokens", flags["max-tokens"]);
  const calls = wholeFrom("max-tool-calls", flags["max-tool-calls"]);
  const cost = costFrom(flags["max-cost"]);
  return {
    turns,
    ...(ms === undefined ? {} : { ms }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(calls === undefined ? {} : { calls }),
    ...(cost === undefined ? {} : { cost }),
  };
}

function wholeFrom(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : 0;
  if (value < 1) throw wrong(flag, text, "a whole number from 1 on", "50");
  return value;
}

function costFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,12}(?:\.\d{1,9})?$/.test(text.trim()) ? Number(text) : 0;
  if (value <= 0) throw wrong("max-cost", text, "a number above 0", "0.50");
  return value;
}

const wrong = (flag: string, given: string, expected: string, example: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--${flag}: expected ${expected}, found ${JSON.stringify(given)}`,
    `harness run --${flag} ${example} "…"`,
  );
