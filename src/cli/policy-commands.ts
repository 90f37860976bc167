import path from "node:path";
import { z } from "zod";
import { placesFrom } from "../config/places.ts";
import { loadRules } from "../config/policy-file.ts";
import { type Mode, MODES, type Verdict, VERDICTS } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { CommandContext } from "../policy/decide.ts";
import { shellText } from "../policy/shell/quote.ts";
import { configFor, workspaceOf } from "./settings.ts";

interface Given {
  /** What stands before `--`. */
  readonly flags: readonly string[];
  readonly dashes: boolean;
  /** The command line behind it; undefined where there is none. */
  readonly text: string | undefined;
}

/** One word behind `--` is a shell line; several are one command with its arguments. */
export function givenCommand(argv: readonly string[]): Given {
  const dashes = argv.indexOf("--");
  if (dashes === -1) return { flags: argv, dashes: false, text: undefined };
  const words = argv.slice(dashes + 1);
  const text = words.length === 0 ? undefined : words.length === 1 ? words[0] : shellText(words);
  return { flags: argv.slice(0, dashes), dashes: true, text };
}

export const noCommand = (example: string): HarnessError =>
  new HarnessError(EXIT.usage, "there is no command", example);

/** `not-allow`: ask and deny are both right. */
const WANTED = [...VERDICTS, "not-allow"] as const;

/** One line of a file of judged commands. Other keys are notes. */
const judgedForm = z.object(
  {
    cmd: z.string("expected a command as text"),
    mode: z.enum(MODES, `expected one of ${MODES.join(", ")}`).optional(),
    want: z.enum(WANTED, `expected one of ${WANTED.join(", ")}`),
    class: z.string("expected a text").default("other"),
    why: z.string("expected a text").default(""),
    /** Another verdict can be defended: counted apart. */
    debatable: z.boolean("expected true or false").default(false),
  },
  "expected a JSON object",
);

export type JudgedCommand = z.infer<typeof judgedForm>;

/** What a line says, or why it cannot be read. */
export function readJudged(line: string): JudgedCommand | string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return "this is no JSON";
  }
  const parsed = judgedForm.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return [issue?.path.map(String).join("."), issue?.message].filter(Boolean).join(": ");
}

/** What is no longer than a line is written out. */
const LONGEST = 120;

/** A command of `harness policy` for the judged text, to be typed next. */
export function nextCommand(
  command: "allow" | "check --explain",
  text: string,
  { mode, cwd }: { readonly mode?: Mode; readonly cwd?: string | undefined },
): string {
  const flags = [
    ...(mode === undefined ? [] : ["--mode", mode]),
    ...(cwd === undefined ? [] : ["--cwd", cwd]),
  ];
  const plain = text.length <= LONGEST && /^[\u0020-\u007E]*$/.test(text);
  return `harness policy ${[command, ...flags.map((flag) => shellText([flag]))].join(" ")} -- ${plain ? shellText([text]) : "CMD"}`;
}

/** What the flags, the settings and the user's rules say of judging. No project can be trusted yet, so none of its rules count. */
export async function judgingFor(
  flags: Readonly<Record<string, unknown>>,
): Promise<CommandContext & { readonly rules: NonNullable<CommandContext["rules"]> }> {
  const { settings } = await configFor(flags);
  const workspace = path.resolve(workspaceOf(flags));
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  const { mode, allow_domains: granted } = settings;
  return { mode, granted, workspace, home: placesFrom(process.env).home, rules };
}

export const exitOf = (verdict: Verdict): number =>
  ({ allow: EXIT.done, ask: EXIT.ask, deny: EXIT.deny })[verdict];
