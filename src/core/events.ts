import * as z from "zod";
import { VERDICTS, MODES } from "./decision.ts";
import { CAUSES } from "./tool.ts";

/**
 * Everything observable of a run. Screen, JSON lines, session log and tests only subscribe. The forms are the contract of
 * `harness run --json`; docs/run-events.schema.json is made from them.
 */

const text = z.string();
const count = z.int().min(0);
const nullableCount = count.nullable();
const ms = z.number().min(0);

export const usageForm = z.strictObject({
  requests: count,
  prompt_tokens: nullableCount,
  completion_tokens: nullableCount,
  cached_tokens: nullableCount,
  cost: z.number().nullable(),
});

const ruleForm = z.strictObject({ id: text, reason: text, span: z.tuple([count, count]).readonly() });

export const INTENTS = ["direct", "repo", "change", "web"] as const;
export type Intent = (typeof INTENTS)[number];

export const RESULT_KINDS = [
  "ok",
  "failed",
  "invalid",
  "denied",
  "blocked",
  "timed_out",
  "cancelled",
] as const;

export const changesForm = z.strictObject({
  added: z.array(text).readonly(),
  modified: z.array(text).readonly(),
  deleted: z.array(text).readonly(),
  /** Changed paths that the ignore rules cover: counted, not listed. */
  ignored: count,
});
export type RunChanges = z.infer<typeof changesForm>;

export const denialForm = z.strictObject({
  call: text,
  tool: text,
  /** The command, or the path. */
  target: text,
  decision: z.enum(VERDICTS),
  rule: text,
  reason: text,
});
export type Denial = z.infer<typeof denialForm>;

export const STATUSES = [
  "done",
  "failed",
  "budget",
  "refused",
  "model",
  "sandbox",
  "parked",
  "interrupted",
] as const;
export type RunStatus = (typeof STATUSES)[number];

/** What each type of event has beside its stamp. */
const BODIES = [
  z.strictObject({
    type: z.literal("run.started"),
    task: text,
    session: text,
    resumed: z.boolean(),
    workspace: text,
    mode: z.enum(MODES),
    provider: text,
    model: text,
  }),
  z.strictObject({
    type: z.literal("intent"),
    intent: z.enum(INTENTS),
    /** flag, words, model, or escalated from a guess that was too small. */
    by: z.enum(["flag", "words", "model", "escalated"]),
  }),
  z.strictObject({ type: z.literal("box.ready"), ms }),
  z.strictObject({ type: z.literal("turn.started"), turn: count, record_count: count }),
  z.strictObject({ type: z.literal("text"), text }),
  z.strictObject({ type: z.literal("thinking"), text }),
  /** What was shown of this reply no longer counts: the model is asked again. */
  z.strictObject({ type: z.literal("model.waiting"), reason: text, ms, attempt: count }),
  z.strictObject({ type: z.literal("model.finished"), text, calls: count, usage: usageForm, ms }),
  z.strictObject({ type: z.literal("model.failed"), kind: text, reason: text, remedy: text }),
  z.strictObject({
    type: z.literal("call.proposed"),
    call: text,
    tool: text,
    args: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({
    type: z.literal("call.decided"),
    call: text,
    decision: z.enum(VERDICTS),
    contained: z.boolean(),
    rules: z.array(ruleForm).readonly(),
    /** Whether it is run, and who or what said so where the verdict was ask. */
    runs: z.boolean(),
    by: z.enum(["policy", "mode", "contained", "person", "nobody"]),
  }),
  z.strictObject({
    type: z.literal("call.ended"),
    call: text,
    kind: z.enum(RESULT_KINDS),
    cause: z.enum(CAUSES).nullable(),
    text,
    /** For show_full, where the text is not all of it. */
    full: text.nullable(),
    ms,
  }),
  z.strictObject({ type: z.literal("notice"), text }),
  z.strictObject({
    type: z.literal("compaction"),
    status: z.enum(["pruned", "started", "succeeded", "failed"]),
    trigger: z.enum(["pressure", "manual", "refused"]),
    /** Estimated tokens of the request. */
    before: count,
    after: count.nullable(),
    reason: text,
  }),
  z.strictObject({ type: z.literal("rolled_back"), record_count: count }),
  z.strictObject({
    type: z.literal("run.finished"),
    status: z.enum(STATUSES),
    exit_code: count,
    reason: text,
    turns: count,
    tool_calls: count,
    usage: usageForm,
    denials: z.array(denialForm).readonly(),
    changes: changesForm.nullable(),
    session: text,
    /** The final answer; null when there is none. */
    answer: text.nullable(),
  }),
] as const;

const STAMP = {
  run: text,
  seq: count,
  /** Of a subagent: the `task` call that it works for. */
  agent: text.optional(),
} as const;

const [first, ...others] = BODIES.map((body) => body.extend(STAMP));
export const eventForm = z.discriminatedUnion("type", [first!, ...others]);

type Body = z.infer<(typeof BODIES)[number]>;
export type EventBody = Body;
export type AgentEvent = Body & { readonly run: string; readonly seq: number; readonly agent?: string };
/** Called in order; whoever subscribes must not throw, and is done when it returns. */
export type Emit = (event: EventBody) => void;
