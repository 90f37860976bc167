import { INTENTS } from "./messages.ts";
import * as z from "zod";
import { commitForm, peakForm, quarantinedForm } from "./box-log.ts";
import { MODES, PROGRAM_PLACES, VERDICTS } from "./decision.ts";
import { handoffForm } from "./handoff.ts";
import { hookFields } from "./hook-form.ts";
import { CAUSES, STATUSES } from "./errors.ts";
import { installedForm } from "./installed.ts";
import { priceForm, promptForm, usageForm } from "./messages.ts";
import { GRANT_TERMS } from "./network.ts";
import { planStepForm } from "./work-plan.ts";

/**
 * Everything observable of a run. Screen, JSON lines, session log and tests only subscribe. The schemas are the
 * contract of `harness run --json`; docs/run-events.schema.json is generated from them.
 */

/** The descriptions appear in docs/run-events.schema.json. */
const text = z.string();
const count = z.int().min(0);
const ms = z.number().min(0);
const argsForm = z.record(z.string(), z.unknown());

/** How one request to a model went, besides its result. */
const REQUEST = {
  first_token_ms: ms
    .describe("From the request to the first piece of the reply. Left out where the reply came as a whole.")
    .exactOptional(),
  prompt: promptForm
    .describe(
      "Tokens of the request by what they are for: estimated, and scaled to `prompt_tokens` where those are known.",
    )
    .exactOptional(),
} as const;

const ruleForm = z.strictObject({
  id: text,
  reason: text,
  span: z.tuple([count, count]).readonly().describe("Of the judged text: from, to; in UTF-16 units."),
});

/** What a call said that it would touch. */
const judgedForm = z.strictObject({
  commands: z.array(text).readonly(),
  folder: text.describe("Where they start; the workspace when left out.").exactOptional(),
  reads: z.array(text).readonly(),
  writes: z.array(text).readonly(),
  hosts: z.array(text).readonly(),
  lasting: z.literal(true).exactOptional().describe("What it starts goes on when the call has ended."),
  program: z
    .enum(PROGRAM_PLACES)
    .exactOptional()
    .describe("Where a program runs that somebody added, and that does the work. Left out where none does."),
});

export const RESULT_KINDS = [
  "ok",
  "failed",
  "invalid",
  "denied",
  "blocked",
  "timed_out",
  "cancelled",
] as const;
export type ResultKind = (typeof RESULT_KINDS)[number];

export const changesForm = z.strictObject({
  added: z.array(text).readonly(),
  modified: z.array(text).readonly(),
  deleted: z.array(text).readonly(),
  ignored: count.describe(
    "Changed paths that the ignore rules cover and git does not track: counted, not listed.",
  ),
  left_out: z
    .strictObject({ added: count, modified: count, deleted: count })
    .exactOptional()
    .describe("How many more there are than are listed: the paths are cut at 1 MiB. Left out where all are."),
  incomplete: z
    .literal(true)
    .exactOptional()
    .describe("The tree could not be seen whole, so there may be more. Left out where it was."),
});
export type RunChanges = z.infer<typeof changesForm>;

export const denialForm = z.strictObject({
  call: text,
  tool: text,
  target: text.describe("The command, or the path."),
  decision: z.enum(VERDICTS),
  rule: text,
  reason: text,
});
export type Denial = z.infer<typeof denialForm>;

export type RunStatus = (typeof STATUSES)[number];

const STAMP = {
  run: text,
  seq: count.describe("Rises by one from event to event of a run."),
  agent: text
    .describe("Of a subagent: its name in this run; its first event is a `task` that says what it was asked.")
    .exactOptional(),
  candidate: count.describe("Of one of several candidates (`--attempts`): which, from 1 on.").exactOptional(),
} as const;
type Stamp = z.infer<z.ZodObject<typeof STAMP>>;

const checkAbout = {
  command: text,
  when: z
    .enum(["before", "between", "after"])
    .describe(
      "Before the first turn, behind a change of a small model, or after the model said that it is done.",
    ),
  round: count.describe("Rounds of repair so far."),
};

const grantForm = z.strictObject({
  domains: z.array(text).readonly().describe("In the form of `allow_domains`."),
  for: z.enum(GRANT_TERMS).describe("For that call, for what is left of the session, or always."),
});

const waitingCall = { call: text, tool: text, text: text.describe("The whole command, or the path.") };

/** One type of event: its stamp, then its own fields. */
const event = <const T extends string, F extends z.core.$ZodShape>(type: T, says: string, own: F) =>
  z.strictObject({ type: z.literal(type), ...STAMP, ...own }).meta({ title: type, description: says });

const verifiedForm = z
  .strictObject({ command: text, exit_code: count, rounds: count.describe("Rounds of repair.") })
  .nullable();

const recordedForm = z.strictObject({
  policy: text.describe("The file with the rules."),
  examples: text.describe("The file with commands, for `harness policy test`."),
  rules: count,
  allow_domains: z.array(text).readonly(),
  left: count.describe("What ran and no rule of the proposal allows: listed in the file, with why."),
  refused: count.describe("What was refused, and so is not proposed: listed there, too."),
});
export type Recorded = z.infer<typeof recordedForm>;

/** How a run, or one of its candidates, ended. */
const ENDED = {
  status: z.enum(STATUSES),
  exit_code: count,
  reason: text,
  turns: count,
  tool_calls: count,
  usage: usageForm,
  denials: z.array(denialForm).readonly(),
  changes: changesForm.nullable(),
  handoff: z
    .array(handoffForm)
    .readonly()
    .describe(
      "Changed paths that the host would later run or obey: to look at before anything is run there.",
    ),
  quarantined: z
    .array(quarantinedForm)
    .readonly()
    .describe("What the host would obey, was made in the box, and was moved out of the workspace.")
    .exactOptional(),
  quarantined_total: count.describe("How many there are; the list holds the first of them.").exactOptional(),
  commits: z
    .array(commitForm)
    .readonly()
    .describe("Commits that were made for commands of the box.")
    .exactOptional(),
  commits_total: count.describe("How many there are; the list holds the first of them.").exactOptional(),
  staged: z
    .array(text)
    .readonly()
    .describe("Paths that the host would obey by itself, staged by commands of the box and not committed.")
    .exactOptional(),
  installed: installedForm
    .describe(
      "Packages that are in the box, where a preset was granted and it could be told; new since the box began.",
    )
    .exactOptional(),
  handoff_left_out: z
    .strictObject({ dangerous: count, look: count })
    .exactOptional()
    .describe(
      "How many more there are, where they are too many to be listed; the dangerous ones come first.",
    ),
  session: text,
  verified: verifiedForm
    .describe(
      "The check that was run in the box when the model said that it is done; null where none was, or where it is not the check that it was: then the reason says what was done to it.",
    )
    .exactOptional(),
  grounded: z
    .boolean()
    .nullable()
    .describe(
      "Of a question about the repository: whether anything of it was looked at. Null for other requests.",
    )
    .exactOptional(),
  answer: text.nullable().describe("The final answer; null when there is none."),
  recorded: recordedForm
    .describe("The policy and the grants that would have sufficed. Left out where they were not asked for.")
    .exactOptional(),
} as const;

/** What is reported about a candidate at the end of the whole run. */
const candidateForm = z.strictObject({
  session: text,
  status: z.enum(STATUSES),
  exit_code: count,
  reason: text,
  verified: verifiedForm,
  applied: z.boolean().describe("Whether it is what is in the workspace now."),
});
export type CandidateTold = z.infer<typeof candidateForm>;
const attemptsForm = z.array(candidateForm).readonly().exactOptional();

export const eventForm = z.discriminatedUnion("type", [
  event("run.started", "The first event of every run.", {
    task: text,
    session: text,
    resumed: z.boolean(),
    workspace: text,
    mode: z.enum(MODES),
    provider: text,
    model: text,
    max_turns: count.exactOptional().describe("How many turns it may have; older versions did not say."),
    strict: z.literal(true).exactOptional().describe("With `--strict`."),
    chat: z
      .literal(true)
      .exactOptional()
      .describe("A request of a chat: its person and its box are those of the requests before it."),
    granted: z
      .array(text)
      .readonly()
      .exactOptional()
      .describe("What its box may reach, as the user wrote it. Left out where that is nothing."),
    price: priceForm.exactOptional().describe("The price of the day, per million tokens. Left out: unknown."),
  }),
  event("intent", "What the task was taken for; it decides whether the box starts at once.", {
    intent: z.enum(INTENTS),
    by: z
      .enum(["flag", "words", "model", "escalated"])
      .describe("What said so; model: of older versions; escalated: a question went on with a change."),
  }),
  event("box.ready", "The box runs and is verified.", {
    ms,
    image: text.describe("The id of its image.").exactOptional(),
  }),
  event("turn.started", "A request goes to the model.", {
    turn: count,
    record_count: count,
    tokens: count.describe("Estimated tokens of the request.").exactOptional(),
    prompt: promptForm.describe("The same by what they are for.").exactOptional(),
  }),
  event("text", "A piece of the reply, as it comes.", { text }),
  event("thinking", "A piece of what the model thinks, as it comes.", { text }),
  event("model.waiting", "What was shown of this reply no longer counts: the model is asked again.", {
    reason: text,
    ms,
    attempt: count,
  }),
  event("model.finished", "A reply is whole.", {
    text,
    calls: count,
    usage: usageForm,
    ms,
    build_ms: ms
      .describe("What it took to make the request, without what was asked for a compaction.")
      .exactOptional(),
    ...REQUEST,
  }),
  event(
    "model.small",
    "Its server says that it has few parameters, as its name does not: its word counts for less.",
    {
      parameters: z.number().describe("Billions of them."),
    },
  ),
  event("model.aside", "A request beside the turns is over: its reply is a part of no conversation.", {
    purpose: z
      .enum(["compaction", "expectation"])
      .describe("`expectation`: what a small model expects a command to print when its task is done."),
    outcome: z.enum(["finished", "failed"]),
    text: text.exactOptional().describe("What was replied, of an `expectation` that finished."),
    usage: usageForm,
    ms,
    ...REQUEST,
  }),
  event("model.failed", "The model gave no reply, and is not asked again.", {
    kind: text,
    reason: text,
    remedy: text,
  }),
  event("call.proposed", "The model wants to call a tool.", { call: text, tool: text, args: argsForm }),
  event("call.decided", "The verdict on a call.", {
    call: text,
    decision: z.enum(VERDICTS),
    contained: z.boolean(),
    rules: z.array(ruleForm).readonly(),
    judged: judgedForm.exactOptional().describe("What was judged: the spans are of it."),
    runs: z.boolean().describe("Whether it is run."),
    by: z
      .enum(["policy", "mode", "contained", "person", "nobody", "hook"])
      .describe("Who or what said so where the verdict was ask; hook: whatever the verdict."),
    grant: grantForm
      .exactOptional()
      .describe("What a person granted with that. Left out where they granted nothing."),
    told: text.exactOptional().describe("What a person said to the model with a no."),
  }),
  event("call.edited", "A person wants it with other arguments.", { call: text, args: argsForm }),
  event("call.parked", "A call waits for a person's word, and the run stops at it.", {
    ...waitingCall,
    folder: text.describe("Where it starts; the workspace when left out.").exactOptional(),
    mode: z.enum(MODES),
    contained: z.boolean(),
    rules: z.array(ruleForm).readonly(),
    grants: z
      .array(text)
      .readonly()
      .exactOptional()
      .describe("With which it would be contained (`--allow-domain`); left out where no grant makes it so."),
  }),
  event("approval", "What a person said to a call that waited.", {
    ...waitingCall,
    said: z.enum(["once", "session", "always", "deny"]),
    by: text.describe("The name of the user."),
    from: z.enum(["terminal", "flag"]),
    told: text.describe("What they say to the model with a no.").exactOptional(),
    edited: text
      .describe("The command that they want in its place: judged anew, and run for once.")
      .exactOptional(),
    grant: grantForm
      .exactOptional()
      .describe("What they granted with it. Left out where they granted nothing."),
  }),
  event("call.ended", "How a call ended, with what the model is told.", {
    call: text,
    kind: z.enum(RESULT_KINDS),
    cause: z.enum(CAUSES).nullable(),
    text,
    full: text.nullable().describe("For show_full, where the text is not all of it."),
    ms,
    exit_code: count.exactOptional().describe("Of the command that the call ran, where it ran one."),
    peak: peakForm.exactOptional().describe("Most memory and processes of that command at a time."),
    reason: text
      .exactOptional()
      .describe("Why, in one line. Left out where it went well, or the exit code is all that is known."),
  }),
  event("hook", "A hook of the user or of the project was asked.", {
    ...hookFields(),
    rules: z.array(ruleForm).readonly().exactOptional(),
    ms,
  }),
  event("check.started", "The command that proves the change is run in the box.", checkAbout),
  event("check.ended", "What came of it.", {
    ...checkAbout,
    exit_code: count,
    ms,
    text: text.describe("Head and tail of what it said, and how it ended."),
  }),
  event("call.missed", "What was meant as a call, and could not be one.", {
    call: text,
    tool: text.describe("As the model named it."),
    kind: z
      .enum(["not_offered", "not_alone", "other_form", "unread"])
      .describe(
        "not_offered: there is no such tool; not_alone: several stood in prose; other_form: the reply was a call in a form that is not read; unread: of a file that had not been read, which the result of the call holds.",
      ),
    nearest: z.array(text).readonly().describe("Tools that may have been meant, the likeliest first."),
  }),
  event("notice", "Something that a person should know.", {
    text,
    untrusted: z
      .array(z.strictObject({ kind: text, file: text, why: text }))
      .readonly()
      .exactOptional()
      .describe("What the project brings that is not trusted, and so counts only where it tightens."),
    attempts: attemptsForm.describe("Behind the end of a candidate: all of them, in order."),
  }),
  event("plan", "What the model has set out to do, the whole of it, in place of the one before.", {
    steps: z.array(planStepForm).readonly(),
  }),
  event("task", "A subagent begins, or it has ended; where its run was parked, it begins again with it.", {
    task: text.exactOptional().describe("Its id, where it runs in the background."),
    status: z.enum(["begun", "done", "failed", "cancelled", "parked"]),
    text: text.describe("The head of what it was asked; how it ended, where that was not well."),
  }),
  event("connection", "A connection of the box, or of the harness for a tool, was refused, or has ended.", {
    host: text.describe("As it was asked for; empty where it could not be read."),
    port: count,
    method: text.nullable().describe("Null where it was passed on as it was."),
    verdict: z.enum(["allowed", "denied"]),
    rule: text,
    reason: text.describe("With what would grant it, where it was refused."),
    up: count.describe("Bytes towards the host."),
    down: count.describe("Bytes back."),
    by: z.literal("harness").exactOptional().describe("Left out where it was the box."),
  }),
  event("canary", "A command touched something false that nobody has a reason to touch; the run ends.", {
    canary: text.describe("What it was to look like: an SSH key."),
    path: text.describe("A path or an address; `output` where what it holds was printed."),
    command: text.describe("As it was given to the box."),
    by: z.array(text).readonly().describe("The programs that led there, the outermost first."),
  }),
  event("compaction", "The conversation is made shorter, because it fills the model's window.", {
    status: z.enum(["pruned", "started", "succeeded", "failed"]),
    trigger: z.enum(["pressure", "manual", "refused"]),
    before: count.describe("Estimated tokens of the request."),
    after: count.nullable(),
    reason: text,
  }),
  event("rolled_back", "The records behind this count no longer are.", { record_count: count }),
  event("files.undone", "Behind the end of a run: a person took back what was changed, or brought it back.", {
    to: count.nullable().describe("The step behind which it was taken back; null where it was brought back."),
    whole: z.boolean().describe("Whether none of it was left as it was."),
  }),
  event("candidate.finished", "The last event of a candidate; the run ends behind all of them.", ENDED),
  event("run.finished", "The last event of every run.", {
    ...ENDED,
    attempts: attemptsForm.describe(
      "The candidates that were begun, in order. Left out where there were none.",
    ),
  }),
]);

type StampedEvent = z.infer<typeof eventForm>;
type WithoutStamp<E> = E extends unknown ? Omit<E, keyof Stamp> : never;
export type EventBody = WithoutStamp<StampedEvent>;
export type AgentEvent = EventBody & Readonly<Stamp>;
/** Called in order. A subscriber must not throw, and is finished when it returns. */
export type Emit = (event: EventBody) => void;
