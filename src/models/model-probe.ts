import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { FailureKind, ModelFailure, ModelRequest, Provider, ToolOffer } from "../core/model-provider.ts";
import { replaceFile } from "../platform/safe-files.ts";

/** What a probe asks of a model, and what it wants to see. */

interface Seen {
  /** Calls that came in the server's own format. */
  readonly native: number;
  readonly calls: readonly { readonly name: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly text: string;
}

interface Check {
  readonly name: string;
  readonly prompt: string;
  readonly passes: (seen: Seen) => boolean;
}

const text = { type: "string" } as const;

const offer = (name: string, description: string, properties: Record<string, object>): ToolOffer => ({
  name,
  description,
  schema: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
});

const TOOLS: readonly ToolOffer[] = [
  offer("read_note", "Returns the text of a note.", { title: text }),
  offer("write_note", "Keeps a note. The text is kept character by character.", { title: text, text }),
];

const CODE = 'function f() {\n  return {"a": [1, 2]};\n}';

const isCall = (
  call: Seen["calls"][number] | undefined,
  name: string,
  args: Record<string, string>,
): boolean =>
  call?.name === name &&
  Object.keys(call.args).length === Object.keys(args).length &&
  Object.entries(args).every(([key, value]) => String(call.args[key]).trim() === value);

const ONE_CALL: Check = {
  name: "one call",
  prompt:
    'Call the tool read_note with the title "alpha". Make the call at once, without an answer in words.',
  passes: ({ calls }) => calls.length === 1 && isCall(calls[0], "read_note", { title: "alpha" }),
};

const BRACES: Check = {
  name: "braces and newlines in a string",
  prompt: `Call the tool write_note with the title "code". The text is exactly these three lines:\n${CODE}`,
  passes: ({ calls }) => calls.length === 1 && isCall(calls[0], "write_note", { title: "code", text: CODE }),
};

const CHECKS: readonly Check[] = [
  ONE_CALL,
  {
    name: "two calls in one reply",
    prompt:
      'Two notes are needed, "alpha" and "beta". Call the tool read_note twice in this one reply, first for "alpha", then for "beta".',
    passes: ({ calls }) =>
      calls.length === 2 &&
      isCall(calls[0], "read_note", { title: "alpha" }) &&
      isCall(calls[1], "read_note", { title: "beta" }),
  },
  BRACES,
  {
    name: "JSON that is only quoted",
    prompt:
      'Call no tool now. Explain in one sentence of plain words what this line of a log means, and quote the line in your answer: {"name": "read_note", "arguments": {"title": "alpha"}}',
    passes: ({ calls, text }) => calls.length === 0 && text.trim() !== "",
  },
];

/** The same every time, and long enough for a model that thinks first. */
const requestFor = (model: string, { prompt }: Check): ModelRequest => ({
  model,
  messages: [
    { role: "system", text: "You are being tried out. Do exactly what you are told, and nothing else." },
    { role: "user", text: prompt },
  ],
  tools: TOOLS,
  maxTokens: 4096,
  temperature: 0,
});

interface ProbeRequest {
  readonly model: string;
  /** Offers tools natively whatever is assumed. */
  readonly native: Provider;
  /** Writes tools into the prompt. */
  readonly written: Provider;
  readonly signal: AbortSignal;
  readonly onCheck: (name: string, passed: boolean) => void;
  /** The server is asked again after so long. */
  readonly onWait: (ms: number, reason: string) => void;
}

export type ProbeResult =
  | {
      readonly kind: "made";
      readonly native: boolean;
      /** Calls get through, natively or as text. */
      readonly usable: boolean;
      readonly checks: Readonly<Record<string, boolean>>;
    }
  | { readonly kind: "failed"; readonly failure: ModelFailure };

/** Without these two no work is done; the others say how well. */
const NEEDED: readonly Check[] = [ONE_CALL, BRACES];
const WRITTEN = "a call written as text";
/** Models are not the same twice, even when asked to be. */
const ATTEMPTS = 2;

/** What the model may have done, and not the server: it fails the check, and the probe only if no reply ever ends. */
const OF_THE_MODEL: ReadonlySet<FailureKind> = new Set(["empty", "garbled", "server"]);

/** Asks a model for real calls, natively; where those do not work, for one in its own words. */
export async function probeCalls(request: ProbeRequest): Promise<ProbeResult> {
  const checks: Record<string, boolean> = {};
  let answered = false;
  let last: ModelFailure | undefined;
  const run = async (name: string, provider: Provider, check: Check): Promise<ModelFailure | undefined> => {
    const { passed, failure } = await tried(provider, request, check);
    if (failure !== undefined && !OF_THE_MODEL.has(failure.kind)) return failure;
    answered ||= failure === undefined || failure.kind === "empty";
    last = failure;
    checks[name] = passed;
    request.onCheck(name, passed);
    return undefined;
  };
  for (const check of CHECKS) {
    const failure = await run(check.name, request.native, check);
    if (failure !== undefined) return { kind: "failed", failure };
  }
  const native = NEEDED.every(({ name }) => checks[name] === true);
  if (!native) {
    const failure = await run(WRITTEN, request.written, ONE_CALL);
    if (failure !== undefined) return { kind: "failed", failure };
  }
  if (!answered && last !== undefined) return { kind: "failed", failure: last };
  return { kind: "made", native, usable: native || checks[WRITTEN] === true, checks };
}

/** A failure where no attempt came to an end, or asking on is of no use. */
interface Tried {
  readonly passed: boolean;
  readonly failure?: ModelFailure;
}

async function tried(provider: Provider, request: ProbeRequest, check: Check): Promise<Tried> {
  const mustBeNative = provider === request.native;
  let failure: ModelFailure | undefined;
  let answered = false;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const seen = await asked(provider, request, check);
    if ("kind" in seen) {
      failure = seen;
      if (!OF_THE_MODEL.has(seen.kind)) return { passed: false, failure };
      continue;
    }
    answered = true;
    if (check.passes(seen) && (!mustBeNative || seen.native >= seen.calls.length)) return { passed: true };
  }
  return answered || failure === undefined ? { passed: false } : { passed: false, failure };
}

async function asked(
  provider: Provider,
  { model, signal, onWait }: ProbeRequest,
  check: Check,
): Promise<Seen | ModelFailure> {
  const native = new Set<number>();
  for await (const event of provider.stream(requestFor(model, check), signal)) {
    if (event.type === "call") native.add(event.index);
    if (event.type === "waiting") {
      native.clear();
      if (event.ms > 0) onWait(event.ms, event.reason);
    }
    if (event.type === "failed") return event.failure;
    if (event.type === "finished")
      return { native: native.size, calls: event.message.calls, text: event.message.text };
  }
  throw new Error("a provider ends with finished or failed");
}

/** What a probe of one model on one server found. */
export interface ProbeRecord {
  /** With its tag, as it was asked for. */
  readonly model: string;
  readonly server: string;
  /** Empty where the server tells none. */
  readonly version: string;
  /** Native calls work. */
  readonly native: boolean;
  /** By the name of the check. */
  readonly checks: Readonly<Record<string, boolean>>;
  /** ISO 8601. */
  readonly at: string;
}

export type ProbeSubject = Pick<ProbeRecord, "model" | "server" | "version">;

const MAX_RECORDS = 500;

const word = z.string().max(1000);
const record = z.object({
  model: word,
  server: word,
  version: word,
  native: z.boolean(),
  checks: z.record(z.string(), z.boolean()),
  at: word,
});
const file = z.object({ version: z.literal(1), probes: z.array(record) });

const placeOf = (stateDir: string): string => path.join(stateDir, "probes.json");

/** Every record; none when the file is missing or no longer readable: a probe can be made again. */
export async function readProbes(stateDir: string): Promise<readonly ProbeRecord[]> {
  try {
    return file.parse(JSON.parse(await readFile(placeOf(stateDir), "utf8"))).probes;
  } catch {
    return [];
  }
}

/** A newer server may read calls in another way, so its version has to be the same. */
export const recordOn = (
  probes: readonly ProbeRecord[],
  { model, server, version }: ProbeSubject,
): ProbeRecord | undefined =>
  probes.findLast((each) => each.model === model && each.server === server && each.version === version);

/** Keeps a record in place of an older one on the same; the file is replaced as a whole or not at all. */
export async function writeProbe(stateDir: string, made: ProbeRecord): Promise<void> {
  const others = (await readProbes(stateDir)).filter((each) => recordOn([each], made) === undefined);
  const probes = [...others, made].slice(-MAX_RECORDS);
  const place = placeOf(stateDir);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await replaceFile(place, `${JSON.stringify({ version: 1, probes }, undefined, 2)}\n`, { lasts: "content" });
}
