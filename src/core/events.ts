import { INTENTS } from "./model-provider.ts";
import * as z from "zod";
import {
  commitForm,
  handoffForm,
  installedForm,
  peakForm,
  planStepForm,
  priceForm,
  promptForm,
  quarantinedForm,
  usageForm,
} from "./run-record.ts";
import { MODES, PROGRAM_PLACES, VERDICTS } from "./decision.ts";
import { hookFields } from "./added-programs.ts";
import { CAUSES, STATUSES } from "./errors.ts";
import { GRANT_TERMS } from "./network.ts";

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
    .describe("From the request to the first piece of the reply. Left out if the reply was not streamed.")
    .exactOptional(),
  prompt: promptForm
    .describe("Tokens of the request by purpose: estimated, and scaled to `prompt_tokens` where known.")
    .exactOptional(),
} as const;

const ruleForm = z.strictObject({
  id: text,
  reason: text,
  span: z.tuple([count, count]).readonly().describe("Start and end in the judged text, in UTF-16 units."),
});

/** What a call said that it would touch. */
const judgedForm = z.strictObject({
  commands: z.array(text).readonly(),
  folder: text.describe("The folder in which they start; the workspace if left out.").exactOptional(),
  reads: z.array(text).readonly(),
  writes: z.array(text).readonly(),
  hosts: z.array(text).readonly(),
  lasting: z.literal(true).exactOptional().describe("What it starts keeps running after the call has ended."),
  program: z
    .enum(PROGRAM_PLACES)
    .exactOptional()
    .describe("Where an added program that does the work runs. Left out if there is none."),
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
    .describe("How many are not listed, as the lists are cut at 1 MiB. Left out if all are listed."),
  incomplete: z
    .literal(true)
    .exactOptional()
    .describe("Not all of the tree could be read, so there may be more changes. Left out otherwise."),
});
export type RunChanges = z.infer<typeof changesForm>;

export const denialForm = z.strictObject({
  call: text,
  tool: text,
  target: text.describe("The command or the path."),
  decision: z.enum(VERDICTS),
  rule: text,
  reason: text,
});
export type Denial = z.infer<typeof denialForm>;

export type RunStatus = (typeof STATUSES)[number];

const STAMP = {
  run: text,
  seq: count.describe("Increases by one with each event of a run."),
  agent: text
    .describe(
      "For a subagent: its name in this run; its first event is a `task` with what it was asked to do.",
    )
    .exactOptional(),
  candidate: count
    .describe("For one of several candidates (`--attempts`): its number, from 1.")
    .exactOptional(),
} as const;
type Stamp = z.infer<z.ZodObject<typeof STAMP>>;

const checkAbout = {
  command: text,
  when: z
    .enum(["before", "between", "after"])
    .describe(
      "Before the first turn, after a change by a small model, or after the model said that it is done.",
    ),
  round: count.describe("Rounds of repair so far."),
};

const grantForm = z.strictObject({
  domains: z.array(text).readonly().describe("In the form of `allow_domains`."),
  for: z.enum(GRANT_TERMS).describe("For that call, for the rest of the session, or always."),
});

const waitingCall = { call: text, tool: text, text: text.describe("The whole command or the path.") };

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
  left: count.describe("Calls that ran but that no proposed rule allows: listed in the file."),
  refused: count.describe("Calls that were refused and are therefore not proposed: listed there too."),
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
      "Changed paths that the host would later run or obey: check them before you run anything there.",
    ),
  quarantined: z
    .array(quarantinedForm)
    .readonly()
    .describe("What the host would obey: made in the box, and moved out of the workspace.")
    .exactOptional(),
  quarantined_total: count.describe("The total; the list has the first ones.").exactOptional(),
  commits: z.array(commitForm).readonly().describe("Commits made for commands in the box.").exactOptional(),
  commits_total: count.describe("The total; the list has the first ones.").exactOptional(),
  staged: z
    .array(text)
    .readonly()
    .describe("Paths that the host would obey by itself, staged by commands in the box and not committed.")
    .exactOptional(),
  installed: installedForm
    .describe(
      "Packages in the box, if a preset was granted and they could be determined; new ones since the box began.",
    )
    .exactOptional(),
  handoff_left_out: z
    .strictObject({ dangerous: count, look: count })
    .exactOptional()
    .describe("How many more there are, if there are too many to list; the dangerous ones are listed first."),
  session: text,
  verified: verifiedForm
    .describe(
      "The check that was run in the box when the model said that it is done. Null if there was none, or if the check was tampered with: the reason then says how.",
    )
    .exactOptional(),
  grounded: z
    .boolean()
    .nullable()
    .describe(
      "For a question about the repository: whether the model looked at any of it. Null for other requests.",
    )
    .exactOptional(),
  answer: text.nullable().describe("The final answer; null if there is none."),
  recorded: recordedForm
    .describe("The policy and the grants that would have been enough. Left out if they were not requested.")
    .exactOptional(),
} as const;

/** What is reported about a candidate at the end of the whole run. */
const candidateForm = z.strictObject({
  session: text,
  status: z.enum(STATUSES),
  exit_code: count,
  reason: text,
  verified: verifiedForm,
  applied: z.boolean().describe("Whether its changes are in the workspace now."),
});
export type CandidateReport = z.infer<typeof candidateForm>;
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
    max_turns: count.exactOptional().describe("The limit on turns; left out by older versions."),
    strict: z.literal(true).exactOptional().describe("With `--strict`."),
    chat: z
      .literal(true)
      .exactOptional()
      .describe("A request in a chat: it has the same person and the same box as the requests before it."),
    granted: z
      .array(text)
      .readonly()
      .exactOptional()
      .describe("What its box may reach, as the user wrote it. Left out if that is nothing."),
    price: priceForm.exactOptional().describe("Price per million tokens at that time. Left out if unknown."),
  }),
  event("intent", "The intent of the task, which decides whether the box starts at once.", {
    intent: z.enum(INTENTS),
    by: z
      .enum(["flag", "words", "model", "escalated"])
      .describe("What decided it. model: only in older versions; escalated: a question led to a change."),
  }),
  event("box.ready", "The box is running and verified.", {
    ms,
    image: text.describe("The ID of its image.").exactOptional(),
  }),
  event("turn.started", "A request is sent to the model.", {
    turn: count,
    record_count: count,
    tokens: count.describe("Estimated tokens of the request.").exactOptional(),
    prompt: promptForm.describe("The same tokens by purpose.").exactOptional(),
  }),
  event("text", "A piece of the reply, as it arrives.", { text }),
  event("thinking", "A piece of the model's thinking, as it arrives.", { text }),
  event("model.waiting", "What was shown of this reply is discarded; the model is asked again.", {
    reason: text,
    ms,
    attempt: count,
  }),
  event("model.finished", "A reply is complete.", {
    text,
    calls: count,
    usage: usageForm,
    ms,
    build_ms: ms
      .describe("The time to build the request, without requests for a compaction.")
      .exactOptional(),
    ...REQUEST,
  }),
  event(
    "model.small",
    "The server reports that the model has few parameters, which its name does not show: its statements count for less.",
    {
      parameters: z.number().describe("In billions."),
    },
  ),
  event("model.aside", "A request outside the turns has ended; its reply is not part of any conversation.", {
    purpose: z
      .enum(["compaction", "expectation"])
      .describe("`expectation`: what a small model expects a command to print when its task is done."),
    outcome: z.enum(["finished", "failed"]),
    text: text.exactOptional().describe("The reply, for an `expectation` that finished."),
    usage: usageForm,
    ms,
    ...REQUEST,
  }),
  event("model.failed", "The model gave no reply, and the request is not repeated.", {
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
    judged: judgedForm.exactOptional().describe("What was judged; the spans refer to it."),
    runs: z.boolean().describe("Whether the call runs."),
    by: z
      .enum(["policy", "mode", "contained", "person", "nobody", "hook"])
      .describe("Who or what decided, if the verdict was ask; hook: for any verdict."),
    grant: grantForm
      .exactOptional()
      .describe("What a person granted with it. Left out if they granted nothing."),
    told: text.exactOptional().describe("What a person told the model when declining the call."),
  }),
  event("call.edited", "A person changed the arguments of the call.", { call: text, args: argsForm }),
  event("call.parked", "A call waits for a person's approval, and the run stops there.", {
    ...waitingCall,
    folder: text.describe("The folder in which it starts; the workspace if left out.").exactOptional(),
    mode: z.enum(MODES),
    contained: z.boolean(),
    rules: z.array(ruleForm).readonly(),
    grants: z
      .array(text)
      .readonly()
      .exactOptional()
      .describe("Grants (`--allow-domain`) with which it would be contained. Left out if there are none."),
  }),
  event("approval", "A person's answer to a call that was waiting.", {
    ...waitingCall,
    said: z.enum(["once", "session", "always", "deny"]),
    by: text.describe("The name of the user."),
    from: z.enum(["terminal", "flag"]),
    told: text.describe("What they told the model when declining the call.").exactOptional(),
    edited: text
      .describe("The command that they want instead: it is judged again, and runs once.")
      .exactOptional(),
    grant: grantForm.exactOptional().describe("What they granted with it. Left out if they granted nothing."),
  }),
  event("call.ended", "How a call ended, with the text that the model gets.", {
    call: text,
    kind: z.enum(RESULT_KINDS),
    cause: z.enum(CAUSES).nullable(),
    text,
    full: text.nullable().describe("The reference for show_full, if the text is not complete."),
    ms,
    exit_code: count.exactOptional().describe("The exit code of the command, if the call ran one."),
    peak: peakForm.exactOptional().describe("The peak memory and number of processes of that command."),
    reason: text
      .exactOptional()
      .describe("The reason, in one line. Left out on success, or if only the exit code is known."),
  }),
  event("hook", "A hook of the user or the project ran.", {
    ...hookFields(),
    rules: z.array(ruleForm).readonly().exactOptional(),
    ms,
  }),
  event("check.started", "The command that checks the change starts in the box.", checkAbout),
  event("check.ended", "The result of the check.", {
    ...checkAbout,
    exit_code: count,
    ms,
    text: text.describe("The head and tail of its output, and how it ended."),
  }),
  event("call.missed", "Text that was meant as a call but could not be run as one.", {
    call: text,
    tool: text.describe("The name that the model used."),
    kind: z
      .enum(["not_offered", "not_alone", "other_form", "unread"])
      .describe(
        "not_offered: there is no such tool; not_alone: several calls stood within prose; other_form: the reply was a call in a form that is not supported; unread: a change to a file that had not been read, whose content is in the result of the call.",
      ),
    nearest: z.array(text).readonly().describe("Tools that may have been meant, the most likely first."),
  }),
  event("notice", "Something that a person should know.", {
    text,
    untrusted: z
      .array(z.strictObject({ kind: text, file: text, why: text }))
      .readonly()
      .exactOptional()
      .describe("What the project brings that is not trusted: used only where it makes rules stricter."),
    attempts: attemptsForm.describe("At the end of a candidate: all candidates, in order."),
  }),
  event("plan", "The model's whole plan, which replaces the previous one.", {
    steps: z.array(planStepForm).readonly(),
  }),
  event("task", "A subagent begins or has ended; one of a parked run begins again with that run.", {
    task: text.exactOptional().describe("Its ID, if it runs in the background."),
    status: z.enum(["begun", "done", "failed", "cancelled", "parked"]),
    text: text.describe("The head of its task; how it ended, if it did not succeed."),
  }),
  event("connection", "A connection of the box, or of harness for a tool, was refused or has ended.", {
    host: text.describe("As requested; empty if it could not be read."),
    port: count,
    method: text.nullable().describe("Null if the connection was passed through unread."),
    verdict: z.enum(["allowed", "denied"]),
    rule: text,
    reason: text.describe("If it was refused, also what would grant it."),
    up: count.describe("Bytes sent to the host."),
    down: count.describe("Bytes received from the host."),
    by: z.literal("harness").exactOptional().describe("Left out if it was the box."),
  }),
  event("canary", "A command touched a decoy that nothing has a reason to touch; the run ends.", {
    canary: text.describe("What it imitates, such as an SSH key."),
    path: text.describe("A path or an address; `output` if its content was printed."),
    command: text.describe("As passed to the box."),
    by: z.array(text).readonly().describe("The programs that led to it, the outermost first."),
  }),
  event("compaction", "The conversation is shortened because it fills the model's window.", {
    status: z.enum(["pruned", "started", "succeeded", "failed"]),
    trigger: z.enum(["pressure", "manual", "refused"]),
    before: count.describe("Estimated tokens of the request."),
    after: count.nullable(),
    reason: text,
  }),
  event("rolled_back", "The records after this count are removed.", { record_count: count }),
  event("files.undone", "After the end of a run: a person undid the changes, or redid them.", {
    to: count.nullable().describe("The step after which the changes were undone; null if they were redone."),
    whole: z.boolean().describe("Whether all of them were undone or redone."),
  }),
  event("candidate.finished", "The last event of a candidate; the run ends after all candidates.", ENDED),
  event("run.finished", "The last event of every run.", {
    ...ENDED,
    attempts: attemptsForm.describe(
      "The candidates that were started, in order. Left out if there were none.",
    ),
  }),
]);

type StampedEvent = z.infer<typeof eventForm>;
type WithoutStamp<E> = E extends unknown ? Omit<E, keyof Stamp> : never;
export type EventBody = WithoutStamp<StampedEvent>;
export type AgentEvent = EventBody & Readonly<Stamp>;
/** Called in order. A subscriber must not throw, and is finished when it returns. */
export type Emit = (event: EventBody) => void;
