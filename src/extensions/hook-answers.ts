import * as z from "zod";
import { headWithin } from "../core/text/bytes.ts";
import type { MatchedRule, Verdict } from "../core/decision.ts";
import type { HookEvent } from "../core/hook-form.ts";
import { visible, visibleLine } from "../core/text/visible.ts";

/** The answer of a hook's program, treated purely as data. Pure. */

export type HookRan = { readonly verdict?: HookVerdict } & (
  | {
      readonly kind: "ended";
      readonly exitCode: number;
      readonly stdout: Uint8Array;
      readonly stderr: string;
    }
  /** The program gave no readable answer: it could not be started, hung, or wrote too much. */
  | { readonly kind: "broken"; readonly why: string }
);

/** The policy's verdict on the command of a project's hook; the user's own hooks are not judged. */
export interface HookVerdict {
  readonly decision: Verdict;
  readonly rules: readonly MatchedRule[];
}

/** Values to store; null removes one. */
type StateChanges = Readonly<Record<string, unknown>>;

/** Everything a hook can say; for each event, only the relevant parts are used. */
export type HookAnswer =
  | {
      readonly kind: "said";
      /** The call must not run, for this reason. */
      readonly skip?: string;
      readonly args?: Readonly<Record<string, unknown>>;
      readonly text?: string;
      readonly continue?: string;
      readonly state?: StateChanges;
    }
  | { readonly kind: "broken"; readonly why: string };

/** The exit code that many tools use for a veto without output on stdout. */
const VETO = 2;

const MAX_REASON = 1000;
/** Bytes that one hook may add to a conversation. Text that replaces a result is limited like any result. */
const MAX_TEXT: Readonly<Record<HookEvent, number>> = {
  PreToolUse: 0,
  PostToolUse: Number.POSITIVE_INFINITY,
  Stop: 64 * 1024,
  SessionStart: 16 * 1024,
  PreCompact: 4 * 1024,
};

const state = z.record(z.string(), z.unknown()).optional();
const args = z.record(z.string(), z.unknown());

const FORMS = {
  PreToolUse: z
    .strictObject({
      decision: z.literal("skip").optional(),
      reason: z.string().optional(),
      args: args.optional(),
      state,
    })
    .refine((said) => said.args === undefined || said.decision === undefined, {
      error: "decision and args cannot both be given",
    })
    .refine((said) => said.reason === undefined || said.decision !== undefined, {
      error: "reason needs a decision",
    }),
  PostToolUse: z.strictObject({ text: z.string().optional(), state }),
  Stop: z
    .strictObject({ text: z.string().optional(), continue: z.string().min(1).optional(), state })
    .refine((said) => said.text === undefined || said.continue === undefined, {
      error: "text and continue cannot both be given",
    }),
  SessionStart: z.strictObject({ text: z.string().optional(), state }),
  PreCompact: z.strictObject({ text: z.string().optional(), state }),
} as const satisfies Readonly<Record<HookEvent, z.ZodType>>;

interface ParsedAnswer {
  readonly decision?: "skip" | undefined;
  readonly reason?: string | undefined;
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  readonly text?: string | undefined;
  readonly continue?: string | undefined;
  readonly state?: StateChanges | undefined;
}

export function readAnswer(event: HookEvent, ran: HookRan): HookAnswer {
  if (ran.kind === "broken") return broken(ran.why);
  const { exitCode, stdout, stderr } = ran;
  if (exitCode === VETO && event === "PreToolUse") return { kind: "said", skip: reasonIn(stderr) };
  if (exitCode !== 0)
    return broken(`it exited with ${exitCode}${stderr.trim() === "" ? "" : `: ${lineOf(stderr)}`}`);
  const text = decoded(stdout);
  if (text === undefined) return broken("its output is not UTF-8");
  if (text.trim() === "") return { kind: "said" };
  return answerIn(event, text);
}

function answerIn(event: HookEvent, text: string): HookAnswer {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return broken(`its output is not JSON: ${lineOf(text)}`);
  }
  const read = FORMS[event].safeParse(value);
  if (!read.success) return broken(`its output does not fit ${event}: ${issueIn(read.error)}`);
  const parsed: ParsedAnswer = read.data;
  return {
    kind: "said",
    ...(parsed.decision === undefined ? {} : { skip: reasonIn(parsed.reason ?? "") }),
    ...(parsed.args === undefined ? {} : { args: parsed.args }),
    ...(parsed.text === undefined ? {} : { text: shownWithin(parsed.text, MAX_TEXT[event]) }),
    ...(parsed.continue === undefined ? {} : { continue: shownWithin(parsed.continue, MAX_TEXT[event]) }),
    ...(parsed.state === undefined ? {} : { state: parsed.state }),
  };
}

const broken = (why: string): HookAnswer => ({ kind: "broken", why });

/** Makes sure that nothing in the text acts on a terminal. */
function shownWithin(text: string, most: number): string {
  const clean = visible(text.toWellFormed());
  return most === Number.POSITIVE_INFINITY ? clean : headWithin(clean, most);
}

const reasonIn = (text: string): string =>
  visible(text.toWellFormed()).trim().slice(0, MAX_REASON) || "it gave no reason";

const lineOf = (text: string): string =>
  visibleLine(text.toWellFormed().trim().split("\n", 1)[0] ?? "").slice(0, 200);

function issueIn({ issues: [issue] }: z.ZodError): string {
  const at = (issue?.path ?? []).map(String).join(".");
  return `${at === "" ? "" : `${at}: `}${issue?.message ?? "unexpected value"}`.slice(0, 300);
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
