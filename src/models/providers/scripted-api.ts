import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Capabilities, ToolCall } from "../../core/model-provider.ts";
import { type ModelWire, type WireEvent, WireFailure, type WireRequest } from "../model-api.ts";
import { writtenCall } from "../text-calls/text-protocol.ts";
import { type FORMS, mismatch, type ScenarioPart, type Scenario, type ScenarioStep } from "./scenario.ts";

type PartOf<Kind extends ScenarioPart["kind"]> = Extract<ScenarioPart, { readonly kind: Kind }>;

const MISMATCH_REMEDY = { remedy: "Fix the scenario, or what the run does." };
const PIECES_PER_TURN = 256;
const DEFAULT_CAPABILITIES = { context: 131_072, tools: true, thinking: true, cache: true } as const;

export function scriptedCapabilities({ capabilities }: Scenario): Capabilities {
  const from = (key: keyof typeof DEFAULT_CAPABILITIES) =>
    capabilities[key] === undefined ? "table" : "user";
  return {
    context: capabilities.context ?? DEFAULT_CAPABILITIES.context,
    tools: capabilities.tools ?? DEFAULT_CAPABILITIES.tools,
    calls: (capabilities.tools ?? DEFAULT_CAPABILITIES.tools) ? "native" : "text",
    thinking: capabilities.thinking ?? DEFAULT_CAPABILITIES.thinking,
    cache: capabilities.cache ?? DEFAULT_CAPABILITIES.cache,
    origin: {
      context: from("context"),
      tools: from("tools"),
      calls: from("tools"),
      thinking: from("thinking"),
      cache: from("cache"),
    },
  };
}

/** A model that plays a scenario: each request is answered by the next step. */
export class ScriptedWire implements ModelWire {
  readonly #scenario: Scenario;
  readonly #steps: StepQueues;
  #requests = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#steps = new StepQueues(scenario.steps);
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const { file, capabilities } = this.#scenario;
    if (capabilities.tools === false && request.nativeTools && request.tools.length > 0) throw refusal();
    this.#requests += 1;
    const next = this.#steps.next(request);
    if (next === undefined)
      throw new WireFailure("server", `${file} has no step for request ${this.#requests}`, MISMATCH_REMEDY);
    const { line, expect, reply } = next;
    const wrong = mismatch(expect, request);
    if (wrong !== undefined)
      throw new WireFailure(
        "server",
        `${file}:${line}: request ${this.#requests}: ${wrong}`,
        MISMATCH_REMEDY,
      );
    let calls = 0;
    let stopped = false;
    for (const part of reply) {
      if (part.kind === "delay") await sleep(part.delay, undefined, { signal });
      else yield* inTurns(eventsOf(withRequestNumber(part, this.#requests), calls, request), signal);
      if (part.kind === "call") calls += 1;
      stopped ||= part.kind === "stop";
    }
    if (!stopped) yield { type: "stop", stop: calls > 0 ? "calls" : "end" };
  }
}

/** Yields to the rest of the program during long parts, above all so that cancelling works. */
async function* inTurns(events: Iterable<WireEvent>, signal: AbortSignal): AsyncGenerator<WireEvent> {
  let sent = 0;
  for (const event of events) {
    sent += 1;
    if (sent % PIECES_PER_TURN === 0) await turn(undefined, { signal });
    yield event;
  }
}

/** Steps for one conversation wait for it, in order; all others answer any request. */
class StepQueues {
  readonly #names: readonly string[];
  readonly #queues = new Map<string | undefined, Iterator<ScenarioStep>>();

  constructor(steps: Scenario["steps"]) {
    const named = new Set(targets(steps));
    this.#names = [...named].filter((name) => name !== undefined);
    for (const name of named) this.#queues.set(name, forOne(steps, name));
  }

  next({ messages }: WireRequest): ScenarioStep | undefined {
    const first = messages.find(({ role }) => role === "user")?.text ?? "";
    const name = this.#names.find((each) => first.startsWith(each));
    const next = this.#queues.get(name)?.next();
    return next === undefined || next.done === true ? undefined : next.value;
  }
}

const targets = (steps: Scenario["steps"]): readonly ScenarioStep["to"][] =>
  steps.flatMap((step) => ("steps" in step ? targets(step.steps) : [step.to]));

function* forOne(steps: Scenario["steps"], name: ScenarioStep["to"]): Generator<ScenarioStep> {
  for (const step of steps)
    if (!("steps" in step)) {
      if (step.to === name) yield step;
    } else if (targets(step.steps).includes(name))
      for (let round = 0; round < step.repeat; round += 1) yield* forOne(step.steps, name);
}

/** Replaces the mark in a part's texts with the number of the request. */
function withRequestNumber<T extends Exclude<ScenarioPart, { readonly kind: "delay" }>>(
  part: T,
  request: number,
): T {
  const json = JSON.stringify(part);
  return json.includes("{{request}}")
    ? (JSON.parse(json.replaceAll("{{request}}", String(request))) as T)
    : part;
}

function* eventsOf(
  part: Exclude<ScenarioPart, { readonly kind: "delay" }>,
  index: number,
  { nativeTools }: WireRequest,
): Generator<WireEvent> {
  switch (part.kind) {
    case "text":
      for (let time = 0; time < part.times; time += 1) yield { type: "text", text: part.text };
      return;
    case "thinking":
      for (let time = 0; time < part.times; time += 1) yield { type: "thinking", text: part.thinking };
      return;
    case "call":
      yield nativeTools ? nativeCall(part, index) : { type: "text", text: `\n${asPromptedCall(part)}` };
      return;
    case "written":
      yield { type: "text", text: `\n${WRITTEN[part.form]({ name: part.written, args: part.args })}` };
      return;
    case "usage":
      yield { type: "usage", ...usageFields(part) };
      return;
    case "stop":
      yield { type: "stop", stop: part.stop };
      return;
    case "note":
      yield { type: "note", text: part.note };
      return;
    default:
      throw faultOf(part);
  }
}

const nativeCall = ({ call, args, id }: PartOf<"call">, index: number): WireEvent => ({
  type: "call",
  index,
  name: call,
  args: typeof args === "string" ? args : JSON.stringify(args),
  ...(id === undefined ? {} : { id }),
});

/** The form used by a model that finds its tools in the prompt. */
const asPromptedCall = ({ call, args }: PartOf<"call">): string =>
  typeof args === "string"
    ? `<tool_call>\n{"name": ${JSON.stringify(call)}, "arguments": ${args}}\n</tool_call>`
    : writtenCall({ name: call, args });

type Written = Pick<ToolCall, "name" | "args">;
const bareCall = ({ name, args }: Written): string => JSON.stringify({ name, arguments: args });

const WRITTEN: Readonly<Record<(typeof FORMS)[number], (call: Written) => string>> = {
  tag: writtenCall,
  fence: (call) => `\`\`\`json\n${bareCall(call)}\n\`\`\``,
  bare: bareCall,
};

function usageFields({ usage }: PartOf<"usage">) {
  const { prompt, completion, cached } = usage;
  return {
    ...(prompt === undefined ? {} : { prompt }),
    ...(completion === undefined ? {} : { completion }),
    ...(cached === undefined ? {} : { cached }),
  };
}

const refusal = (): WireFailure =>
  new WireFailure("refused", "the scenario's model does not accept tools", { refusesTools: true });

function faultOf(part: PartOf<"fail" | "refuse_tools" | "cut" | "garbage">): WireFailure {
  switch (part.kind) {
    case "refuse_tools":
      return refusal();
    case "cut":
      return new WireFailure("garbled", "the stream ended in the middle of a reply", { passing: true });
    case "garbage":
      return new WireFailure("garbled", `this is not an event: ${JSON.stringify(part.garbage)}`);
    case "fail":
      return new WireFailure(part.fail, part.reason ?? `the scenario fails with ${part.fail}`, {
        passing: part.passing,
        retryAfterMs: part.retry_after ?? null,
        raw: part.raw ?? null,
      });
  }
}
