import { open } from "node:fs/promises";
import { z } from "zod";
import { type Mode, MODES, type OnAsk, runsUnattended, type Verdict, VERDICTS } from "../../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { DuplicateKey, parseUniqueJson } from "../../core/text/json-text.ts";
import { linesIn } from "../../core/text/line-diff.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { type CommandContext, type CommandDecision, CommandPolicy } from "../../policy/decide.ts";
import { effectText, changesSomething } from "../../policy/effects/effect.ts";
import { hintFor, stepFor, networkStep } from "../../policy/refusal-hints.ts";
import type { RuleForm, UserRule, UserRules } from "../../policy/rule.ts";
import { shellText } from "../../policy/shell/shell-syntax.ts";
import type { ChangedVerdict } from "../../render/policy-lines.ts";
import type { Counts, PastJudgement } from "../../sessions/audit-trail.ts";
import type { Host } from "../host.ts";
import { type Reach, workspacePolicy } from "./policy-context.ts";

interface TypedCommand {
  /** The words before `--`. */
  readonly flags: readonly string[];
  readonly dashes: boolean;
  /** The command line after `--`; undefined if there is none. */
  readonly text: string | undefined;
}

/** One word after `--` is a shell line; several are one command with its arguments. */
export function typedCommand(argv: readonly string[]): TypedCommand {
  const dashes = argv.indexOf("--");
  if (dashes === -1) return { flags: argv, dashes: false, text: undefined };
  const words = argv.slice(dashes + 1);
  const text = words.length === 0 ? undefined : words.length === 1 ? words[0] : shellText(words);
  return { flags: argv.slice(0, dashes), dashes: true, text };
}

export const noCommand = (example: string): HarnessError =>
  new HarnessError(EXIT.usage, "no command was given", example);

/** `not-allow`: ask and deny are both right. */
const EXPECTED_VERDICTS = [...VERDICTS, "not-allow"] as const;

/** One line of a file of judged commands. Other keys are notes. */
const judgedForm = z.object(
  {
    cmd: z.string("expected a command, as a string"),
    mode: z.enum(MODES, `expected one of ${MODES.join(", ")}`).optional(),
    want: z.enum(EXPECTED_VERDICTS, `expected one of ${EXPECTED_VERDICTS.join(", ")}`),
    class: z.string("expected a string").default("other"),
    why: z.string("expected a string").default(""),
    /** Another verdict can be defended, so the command is counted apart. */
    debatable: z.boolean("expected true or false").default(false),
  },
  "expected a JSON object",
);

export type JudgedCommand = z.infer<typeof judgedForm>;

/** The parsed line, or why it cannot be read. */
export function readJudged(line: string): JudgedCommand | string {
  let value: unknown;
  try {
    value = parseUniqueJson(line);
  } catch (thrown) {
    return thrown instanceof DuplicateKey ? visibleLine(thrown.message) : "not valid JSON";
  }
  const parsed = judgedForm.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return [issue?.path.map(String).join("."), issue?.message].filter(Boolean).join(": ");
}

/** A longer command is not written out. */
const MAX_SHOWN = 120;

/** The `harness policy` command to type next for the judged text. */
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

/** A command whose verdict differs from the wanted one. */
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
  /** Without the debatable commands. */
  readonly classes = new Map<string, Count>();
  readonly sure: Count = { right: 0, total: 0 };
  readonly debatable: Count = { right: 0, total: 0 };
  readonly #policy: CommandPolicy;
  readonly #context: CommandContext;

  constructor(policy: CommandPolicy, context: CommandContext) {
    this.#policy = policy;
    this.#context = context;
  }

  /** Undefined if the verdict is right. */
  judge(judged: JudgedCommand, line: number): Wrong | undefined {
    const { cmd, want, class: group, debatable, mode = this.#context.mode } = judged;
    const { decision: got, rules } = this.#policy.decide(cmd, { ...this.#context, mode });
    const right = want === got || (want === "not-allow" && got !== "allow");
    for (const count of debatable ? [this.debatable] : [this.sure, this.#classOf(group)]) {
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

  #classOf(group: string): Count {
    const known = this.classes.get(group);
    if (known !== undefined) return known;
    const count = { right: 0, total: 0 };
    this.classes.set(group, count);
    return count;
  }
}

/** The rules of a named file, used instead of the user's, with the commands in that file as examples. */
interface RulesFile {
  readonly rules: UserRules;
  readonly examples: readonly JudgedCommand[];
}

/** Whether a file holds rules: any TOML file, or a JSON file that begins with them. */
export async function holdsRules(file: string): Promise<boolean> {
  if (file.endsWith(".toml")) return true;
  if (!file.endsWith(".json")) return false;
  const { readConfigText } = await import("../../config/load-config.ts");
  return /^(?:\s|\/\/[^\n]*\n|\{)*"rules"/.test(readConfigText(file) ?? "");
}

/** Throws on a mistake in the rules, or on an example that fails with its rule alone. */
export async function rulesIn({ places }: Host, file: string): Promise<RulesFile> {
  const [{ readConfigText }, { triedRules }] = await Promise.all([
    import("../../config/load-config.ts"),
    import("../../config/policy-rules-file.ts"),
  ]);
  const text = readConfigText(file);
  if (text === undefined) throw new HarnessError(EXIT.usage, `${file}: there is no such file`, "ls");
  const tried = await triedRules({ file, text, origin: "user" }, places.home);
  return {
    rules: tried.map(({ rule }) => rule),
    examples: tried.flatMap(({ rule, match }) => match.map((cmd) => exampleOf(rule, cmd))),
  };
}

const exampleOf = ({ id, decision, reason }: UserRule, cmd: string): JudgedCommand => ({
  cmd,
  want: decision === "ask" ? "not-allow" : decision,
  class: id,
  why: reason,
  debatable: false,
});

/** Examples of rules are tried outside of any workspace. */
export const NOWHERE = "/workspace";

/** The lines of a file, or of stdin for `-`. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === "-") {
    yield* linesIn(process.stdin);
    return;
  }
  await using handle = await openFile(file);
  yield* linesIn(handle.createReadStream());
}

async function openFile(file: string): ReturnType<typeof open> {
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

/** Judges one JSON object per line, in order; a malformed line gets an answer too. */
export async function* judgedLines(
  input: AsyncIterable<Uint8Array>,
  policy: CommandPolicy,
  context: CommandContext,
): AsyncGenerator<CommandDecision> {
  let number = 0;
  for await (const line of linesIn(input)) {
    number += 1;
    const read = readLine(line);
    yield typeof read === "string"
      ? misread(`line ${number}: ${read}`)
      : policy.decide(read.cmd, { ...context, ...(read.mode === undefined ? {} : { mode: read.mode }) });
  }
}

interface JudgeRequest {
  readonly cmd: string;
  readonly mode?: Mode;
}

/** The request, or why it cannot be read. */
function readLine(line: string): JudgeRequest | string {
  let parsed: unknown;
  try {
    parsed = parseUniqueJson(line);
  } catch (thrown) {
    if (thrown instanceof DuplicateKey) return visibleLine(thrown.message);
    return 'not valid JSON; expected {"cmd": "ls -l"}';
  }
  if (typeof parsed !== "object" || parsed === null || !("cmd" in parsed) || typeof parsed.cmd !== "string")
    return 'expected an object with a string "cmd", as in {"cmd": "ls -l", "mode": "read-only"}';
  const mode = "mode" in parsed ? parsed.mode : undefined;
  if (mode === undefined) return { cmd: parsed.cmd };
  const known = MODES.find((each) => each === mode);
  return known === undefined ? `mode must be one of ${MODES.join(", ")}` : { cmd: parsed.cmd, mode: known };
}

const misread = (reason: string): CommandDecision => ({
  decision: "deny",
  contained: false,
  rules: [{ id: "input.line", reason, span: [0, 0] }],
  effects: [],
});

/** Refuses what a run without a person refuses: denied commands, and commands that ask without being contained. */
export async function refuseUnlessAllowed(
  host: Host,
  words: readonly string[],
  {
    mode,
    on_ask: onAsk,
    allow_domains: granted,
    deny_domains: denied = [],
  }: Reach & { readonly on_ask?: OnAsk },
  { workspace, cwd }: { readonly workspace: string; readonly cwd: string | undefined },
): Promise<void> {
  const context = { ...(await workspacePolicy(host, workspace)), mode, granted, denied };
  const text = shellText(words);
  const { decision, standings } = new CommandPolicy().explain(text, context);
  if (runsUnattended(decision, mode, onAsk)) return;
  // Names a rule that prevents the run, even if a rule that would run unattended stands first.
  const rule = decision.rules.find((_, at) => {
    const standing = standings[at];
    return (
      standing === undefined || !runsUnattended({ ...standing, decision: standing.verdict }, mode, onAsk)
    );
  });
  const verdict = decision.decision === "deny" ? "denied" : "nobody is there to ask";
  throw new HarnessError(
    EXIT.refused,
    `${verdict}: ${visibleLine(rule?.reason ?? "no rule allows it")} (${rule?.id ?? "none"})`,
    (rule &&
      stepFor(
        rule.id,
        decision.contained,
        decision.decision === "deny" ? undefined : networkStep(decision, text, context),
      )) ??
      nextCommand("check --explain", text, { mode, cwd }),
  );
}

export interface ExplainedCommand {
  readonly decision: CommandDecision;
  readonly verdicts: readonly Verdict[];
  readonly effects: readonly string[];
  readonly mode: Mode;
  readonly onAsk: OnAsk;
  readonly writes: boolean;
  /** A rule could allow exactly this command. */
  readonly allowable: boolean;
  /** An alternative that would pass, by the id of the rule. */
  readonly hintFor: (rule: string) => string | undefined;
}

/** A verdict with every rule behind it, and whether the user could allow this very command. */
export async function explain(
  text: string,
  policy: CommandPolicy,
  context: CommandContext & { readonly onAsk: OnAsk },
): Promise<ExplainedCommand> {
  const { decision, standings } = policy.explain(text, context);
  const { ruleFor } = await import("../../policy/rules-from-commands.ts");
  const network = networkStep(decision, text, context);
  const asks = decision.decision === "ask" && context.mode === "workspace-write";
  return {
    decision,
    verdicts: standings.map(({ verdict }) => verdict),
    effects: decision.effects.map(effectText),
    mode: context.mode,
    onAsk: context.onAsk,
    writes: decision.effects.some(changesSomething),
    hintFor: (rule) => hintFor(rule, decision.contained, network),
    allowable: asks && ruleFor(text, context, policy).kind === "rules",
  };
}

export const commandPolicy = (): CommandPolicy => new CommandPolicy();

/** Writes the narrowest rules that allow exactly this command, or returns why there are none. */
export async function allowCommand(
  { env }: Host,
  text: string,
  context: CommandContext,
): Promise<
  | {
      readonly kind: "written";
      readonly file: string;
      readonly rules: readonly RuleForm[];
      readonly text: string;
    }
  | { readonly kind: "refused"; readonly reason: string }
> {
  const [{ ruleFor }, { tomlRule }, { addRules }] = await Promise.all([
    import("../../policy/rules-from-commands.ts"),
    import("../../policy/rule.ts"),
    import("../../config/policy-rules-file.ts"),
  ]);
  const made = ruleFor(text, context, new CommandPolicy());
  if (made.kind === "refused") return made;
  const { rules } = made;
  const file = await addRules(env, rules);
  return { kind: "written", file, rules, text: rules.map((rule) => visible(tomlRule(rule))).join("\n") };
}

export interface PastVerdicts {
  readonly counts: Counts;
  /** Verdicts that would differ now, as they are found; `judged` counts all commands examined so far. */
  readonly changed: AsyncIterable<ChangedVerdict>;
  readonly judged: () => number;
}

/** Judges the commands of past sessions again, starting at the time `since`. */
export async function judgedAgain(
  { places }: Host,
  since: number,
  context: CommandContext,
): Promise<PastVerdicts> {
  const { pastJudgements, noCounts } = await import("../../sessions/audit-trail.ts");
  const counts = noCounts();
  const policy = new CommandPolicy();
  const total = { judged: 0 };
  async function* changed(): AsyncGenerator<ChangedVerdict> {
    for await (const then of pastJudgements(places.state, counts)) {
      if (Date.parse(then.ts) < since) continue;
      total.judged += 1;
      const change = changeOf(then, policy, context);
      if (change !== undefined) yield change;
    }
  }
  return { counts, changed: changed(), judged: () => total.judged };
}

/** Undefined if the verdict is the same. */
function changeOf(
  then: PastJudgement,
  policy: CommandPolicy,
  judging: CommandContext,
): ChangedVerdict | undefined {
  const { command, mode, workspace, folder, decision: old, ts, session } = then;
  const place = folder === undefined ? { workspace } : { workspace, folder };
  const now = policy.decide(command, { ...judging, mode, ...place });
  if (now.decision === old) return undefined;
  const [rule] = now.rules;
  return {
    ts,
    session,
    command,
    mode,
    old,
    new: now.decision,
    rule: rule?.id ?? "",
    reason: rule?.reason ?? "",
  };
}
