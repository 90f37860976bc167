import type { ToolCall } from "../core/messages.ts";
import type { InvalidCall, PreparedCall, ToolResult } from "../core/tool.ts";
import type { Reply } from "./ask.ts";
import { endUnrun, runCall } from "./call.ts";
import { NOTICE } from "./context/history.ts";
import type { LoopEnd } from "./loop.ts";
import { waves } from "./schedule.ts";
import type { Seat } from "./seat.ts";
import { Stopped, waitsFor } from "./stopped.ts";

type Replied = Extract<Reply, { readonly kind: "replied" }>;

/** The calls of one reply, or those that are left of it. */
export interface Round {
  readonly calls: readonly ToolCall[];
  readonly malformed: Replied["malformed"];
  /** For the model, with the last result. */
  readonly note?: string;
}

/** Runs the calls of one reply: readers side by side, everything else in order. Undefined when the loop goes on. */
export async function runRound(seat: Seat, round: Round, signal: AbortSignal): Promise<LoopEnd | undefined> {
  const { calls, malformed } = round;
  const spent = seat.limits.reached("call");
  if (spent !== undefined && calls.length > 0) return { how: "limit", ...spent };
  for (const { id, name, args } of calls) seat.emit({ type: "call.proposed", call: id, tool: name, args });
  const planned = waves(calls.map((call) => ({ call, beside: isBeside(seat, call) })));
  let good = 0;
  for (const wave of planned) {
    const results = await Promise.all(wave.map(({ call }) => one(seat, call, signal)));
    if (signal.aborted) return { how: "cancelled" };
    if (results.includes("stop")) return { how: "repeated" };
    const stopped = results.filter((result) => result instanceof Stopped);
    const [first] = stopped;
    const ends = wave === planned.at(-1) && first === undefined;
    good += tell(seat, endedOf(wave, results), ends ? await notices(seat, round) : "");
    if (first !== undefined) return parkedAt(first, stopped, malformed);
  }
  if (calls.length === 0) seat.history.add({ role: "user", text: (await notices(seat, round)).trim() });
  const bad = calls.length - good + malformed.length;
  const reason = seat.malformed.replied({ good, bad });
  return reason === undefined ? undefined : { how: "model_broken", reason };
}

interface EndedOne {
  readonly call: string;
  readonly result: ToolResult;
}

const endedOf = (
  wave: readonly { readonly call: ToolCall }[],
  results: readonly (ToolResult | Stopped | "stop")[],
): readonly EndedOne[] =>
  wave.flatMap(({ call: { id } }, at) => {
    const result = results[at];
    return result === undefined || result === "stop" || result instanceof Stopped
      ? []
      : [{ call: id, result }];
  });

/** Tells the model, with what stands behind the last result; how many calls there were that could be run. */
function tell(seat: Seat, ended: readonly EndedOne[], behind: string): number {
  for (const [at, { call, result }] of ended.entries()) {
    const text = at === ended.length - 1 ? result.text + behind : result.text;
    seat.history.add({ role: "tool", call, text });
  }
  return ended.filter(({ result }) => result.kind !== "invalid").length;
}

/** The first of them is asked about; the others ask again when their turn comes. */
function parkedAt(
  { question }: Stopped,
  stopped: readonly Stopped[],
  malformed: Round["malformed"],
): LoopEnd {
  const children = stopped.flatMap(({ child }) => child ?? []);
  return { how: "parked", reason: waitsFor(question), waiting: { question, malformed, children } };
}

/** Known before it is run, so that readers can be run together. */
function isBeside(seat: Seat, call: ToolCall): boolean {
  const prepared = prepare(seat, call);
  return prepared.kind === "prepared" && prepared.beside;
}

function prepare(seat: Seat, { name, args }: ToolCall): PreparedCall | InvalidCall {
  const tool = seat.offer.tools.find((each) => each.name === name);
  if (tool !== undefined) return tool.prepare(args);
  const names = seat.offer.tools.map((each) => each.name).join(", ");
  return { kind: "invalid", issues: [`there is no tool ${JSON.stringify(name)}; there are: ${names}`] };
}

async function one(seat: Seat, call: ToolCall, signal: AbortSignal): Promise<ToolResult | Stopped | "stop"> {
  const guarded = seat.guard.check(call, seat.limits.turns);
  if (guarded === "stop") return "stop";
  const result =
    guarded === "run" ? await unlessStopped(seat, call, signal) : endUnrun(seat, call, broken(guarded));
  if (result instanceof Stopped) return result;
  seat.guard.ended(call, result.text);
  return result;
}

async function unlessStopped(seat: Seat, call: ToolCall, signal: AbortSignal): Promise<ToolResult | Stopped> {
  try {
    return await tried(seat, call, signal);
  } catch (thrown) {
    if (!(thrown instanceof Stopped)) throw thrown;
    seat.limits.uncall();
    return thrown;
  }
}

function tried(seat: Seat, call: ToolCall, signal: AbortSignal): Promise<ToolResult> | ToolResult {
  const prepared = prepare(seat, call);
  if (prepared.kind === "invalid") return endUnrun(seat, call, invalid(call, prepared.issues));
  const spent = seat.limits.reached("call");
  if (spent !== undefined)
    return endUnrun(seat, call, { kind: "failed", cause: "policy", text: `Not run. ${spent.text}` });
  seat.limits.call();
  return runCall(seat, call, prepared, signal);
}

const broken = ({ broken: text }: { readonly broken: string }): ToolResult => ({
  kind: "invalid",
  issues: [text],
  text,
});

const invalid = ({ name }: ToolCall, issues: readonly string[]): ToolResult => ({
  kind: "invalid",
  issues,
  text: `${name} was not run, its arguments are wrong:\n${issues.map((issue) => `- ${issue}`).join("\n")}\nCall it again with these mended.`,
});

/** What the model is told behind its results: there, it changes nothing of what it has read before. */
async function notices(seat: Seat, { malformed, note }: Round): Promise<string> {
  const lines = malformed.map(
    ({ name, reason }) => `Your call of ${name || "a tool"} was not run: ${reason}`,
  );
  if (note !== undefined) lines.unshift(note);
  const limit = seat.limits.note();
  if (limit !== undefined) {
    seat.emit({ type: "notice", text: limit });
    lines.push(limit);
  }
  const briefing = await seat.briefing();
  const notes = lines.map((line) => `\n\n${NOTICE}${line}`).join("");
  return briefing === undefined ? notes : `${notes}\n\n${briefing}`;
}
