import { open } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { configFor, workspaceOf } from "../cli/settings.ts";
import { placesFrom } from "../config/places.ts";
import { loadRules } from "../config/policy-file.ts";
import { type Mode, MODES, runsUnattended, type Verdict, VERDICTS } from "../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { linesIn } from "../core/line-diff.ts";
import { visibleLine } from "../core/visible.ts";
import { type CommandContext, type CommandDecision, CommandPolicy } from "../policy/decide.ts";
import { hintFor } from "../policy/ruling.ts";
import { shellText } from "../policy/shell/quote.ts";
import { ignoreRulesOf } from "./policy-context.ts";

interface GivenCommand {
  /** What stands before `--`. */
  readonly flags: readonly string[];
  readonly dashes: boolean;
  /** The command line behind it; undefined where there is none. */
  readonly text: string | undefined;
}

/** One word behind `--` is a shell line; several are one command with its arguments. */
export function givenCommand(argv: readonly string[]): GivenCommand {
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
const MAX_SHOWN = 120;

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
  const plain = text.length <= MAX_SHOWN && /^[\u0020-\u007E]*$/.test(text);
  return `harness policy ${[command, ...flags.map((flag) => shellText([flag]))].join(" ")} -- ${plain ? shellText([text]) : "CMD"}`;
}

/** What the flags, the settings and the user's rules say of judging. No project can be trusted yet, so none of its rules count. */
export async function judgingFor(
  flags: Readonly<Record<string, unknown>>,
): Promise<CommandContext & { readonly rules: NonNullable<CommandContext["rules"]> }> {
  const { settings } = await configFor(flags);
  const workspace = path.resolve(workspaceOf(flags));
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  return { mode: settings.mode, workspace, home: placesFrom(process.env).home, rules };
}

export const exitOf = (verdict: Verdict): number =>
  ({ allow: EXIT.done, ask: EXIT.ask, deny: EXIT.deny })[verdict];

/** A command whose verdict is not the wanted one. */
interface Wrong {
  readonly line: number;
  readonly cmd: string;
  readonly mode: Mode;
  readonly class: string;
  readonly want: JudgedCommand["want"];
  readonly got: Verdict;
  readonly rule: string;
  readonly reason: string;
  readonly debatable: boolean;
}

interface Count {
  right: number;
  total: number;
}

/** Judges the lines of a file one by one and keeps the count. */
export class Score {
  readonly wrong: Wrong[] = [];
  /** Without the debatable ones. */
  readonly classes = new Map<string, Count>();
  readonly sure: Count = { right: 0, total: 0 };
  readonly debatable: Count = { right: 0, total: 0 };
  private readonly policy: CommandPolicy;
  private readonly context: CommandContext;

  constructor(policy: CommandPolicy, context: CommandContext) {
    this.policy = policy;
    this.context = context;
  }

  /** Undefined for a right one. */
  judge(judged: JudgedCommand, line: number): Wrong | undefined {
    const { cmd, want, class: group, debatable, mode = this.context.mode } = judged;
    const { decision: got, rules } = this.policy.decide(cmd, { ...this.context, mode });
    const right = want === got || (want === "not-allow" && got !== "allow");
    for (const count of debatable ? [this.debatable] : [this.sure, this.classOf(group)]) {
      count.total += 1;
      if (right) count.right += 1;
    }
    if (right) return undefined;
    const [first] = rules;
    const wrong = {
      line,
      cmd,
      mode,
      class: group,
      want,
      got,
      rule: first?.id ?? "",
      reason: first?.reason ?? "",
    };
    this.wrong.push({ ...wrong, debatable });
    return this.wrong.at(-1);
  }

  private classOf(group: string): Count {
    const known = this.classes.get(group);
    if (known !== undefined) return known;
    const count = { right: 0, total: 0 };
    this.classes.set(group, count);
    return count;
  }
}

/** The lines of a file, or of stdin for `-`. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === "-") {
    yield* linesIn(process.stdin);
    return;
  }
  await using handle = await opened(file);
  yield* linesIn(handle.createReadStream());
}

async function opened(file: string): ReturnType<typeof open> {
  try {
    const handle = await open(file);
    if (!(await handle.stat()).isDirectory()) return handle;
    await handle.close();
    throw new Error("it is a folder");
  } catch (thrown) {
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

/** Judges one JSON object a line, in order; a line that is none gets an answer too. */
export async function* judgedLines(
  input: AsyncIterable<Uint8Array>,
  policy: CommandPolicy,
  context: CommandContext,
): AsyncGenerator<CommandDecision> {
  let number = 0;
  for await (const line of linesIn(input)) {
    number += 1;
    const asked = readLine(line);
    yield typeof asked === "string"
      ? misread(`line ${number}: ${asked}`)
      : policy.decide(asked.cmd, { ...context, ...(asked.mode === undefined ? {} : { mode: asked.mode }) });
  }
}

interface Asked {
  readonly cmd: string;
  readonly mode?: Mode;
}

/** What is asked, or why that cannot be read. */
function readLine(line: string): Asked | string {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    return 'this is no JSON; expected {"cmd": "ls -l"}';
  }
  if (typeof given !== "object" || given === null || !("cmd" in given) || typeof given.cmd !== "string")
    return 'expected an object with a text "cmd", as in {"cmd": "ls -l", "mode": "read-only"}';
  const mode = "mode" in given ? given.mode : undefined;
  if (mode === undefined) return { cmd: given.cmd };
  const known = MODES.find((each) => each === mode);
  return known === undefined ? `mode is one of ${MODES.join(", ")}` : { cmd: given.cmd, mode: known };
}

const misread = (reason: string): CommandDecision => ({
  decision: "deny",
  contained: false,
  rules: [{ id: "input.line", reason, span: [0, 0] }],
  effects: [],
});

/** Refuses a command as a run does with nobody there: what is denied, and what asks without being contained. */
export async function refuseUnlessAllowed(
  words: readonly string[],
  mode: Mode,
  flags: { readonly cwd?: string | undefined },
): Promise<void> {
  const { home } = placesFrom(process.env);
  const workspace = path.resolve(workspaceOf(flags));
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  const ignore = await ignoreRulesOf(workspace);
  const context = { mode, workspace, home, rules, ...(ignore === undefined ? {} : { ignore }) };
  const text = shellText(words);
  const { decision, standings } = new CommandPolicy().explain(text, context);
  if (runsUnattended(decision, mode)) return;
  // What runs unattended is not why it is refused, though its rule may stand first.
  const rule = decision.rules.find((_, at) => {
    const standing = standings[at];
    return standing === undefined || !runsUnattended({ ...standing, decision: standing.verdict }, mode);
  });
  const verdict = decision.decision === "deny" ? "denied" : "nobody is there to be asked";
  throw new HarnessError(
    EXIT.refused,
    `${verdict}: ${visibleLine(rule?.reason ?? "no rule allows it")} (${rule?.id ?? "none"})`,
    (rule && hintFor(rule.id)) ?? nextCommand("check --explain", text, { mode, cwd: flags.cwd }),
  );
}
