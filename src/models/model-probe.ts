import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import {
  CALL_FORMS,
  type CallForm,
  type FailureKind,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  type ToolOffer,
} from "../core/model-provider.ts";
import { replaceFile } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";

/** The checks of a probe: a prompt for the model, and what its reply has to contain. */

interface ObservedReply {
  /** Number of calls in the server's own format. */
  readonly native: number;
  readonly calls: readonly { readonly name: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly text: string;
}

interface Check {
  readonly name: string;
  readonly prompt: string;
  readonly passes: (seen: ObservedReply) => boolean;
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
  call: ObservedReply["calls"][number] | undefined,
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

/** Identical each time except for the temperature; long enough for a model that thinks first. */
const requestFor = (model: string, { prompt }: Check): ModelRequest => ({
  model,
  messages: [
    { role: "system", text: "You are being tried out. Do exactly what you are told, and nothing else." },
    { role: "user", text: prompt },
  ],
  tools: TOOLS,
  maxTokens: 4096,
});

interface ProbeRequest {
  readonly model: string;
  /** Offers tools natively, whatever is assumed about the model. */
  readonly native: Provider;
  /** Writes tools into the prompt. */
  readonly written: Provider;
  /** Like `written`, but with each reply held to a schema; left out if the API cannot do that. */
  readonly withSchema?: Provider;
  readonly signal: AbortSignal;
  readonly onCheck: (name: string, passed: boolean) => void;
  /** The server is asked again after this time. */
  readonly onWait: (ms: number, reason: string) => void;
}

/** How many of the requested calls got through in one form. */
interface Share {
  readonly valid: number;
  readonly asked: number;
}

/** Only the forms that were measured. */
type Shares = Readonly<Partial<Record<CallForm, Share>>>;

export type ProbeResult =
  | {
      readonly kind: "made";
      readonly native: boolean;
      /** Calls get through in some form. */
      readonly usable: boolean;
      /** The form in which most calls got through. Ties go to native, then to held, which is always a call. */
      readonly calls: CallForm;
      readonly shares: Shares;
      readonly checks: Readonly<Record<string, boolean>>;
    }
  | { readonly kind: "failed"; readonly failure: ModelFailure };

/** No work is possible without these two, so they are the ones measured; the others tell how well a model works. */
const NEEDED: readonly Check[] = [ONE_CALL, BRACES];
const OTHER_FORMS = { text: "a call written as text", held: "a call held to a schema" } as const;
/** Models vary even when asked not to: one try is deterministic, the other is not. */
const TEMPERATURES: readonly number[] = [0, 0.7];

/**
 * Failures that the model may have caused rather than the server. They fail the check; the probe fails only if no reply
 * ever completes.
 */
const MODEL_FAILURES: ReadonlySet<FailureKind> = new Set(["empty", "garbled", "server"]);

/** Asks a model for real native calls; if some do not get through, tries the other forms too. */
export async function probeCalls(request: ProbeRequest): Promise<ProbeResult> {
  const probe = new Probe(request);
  const failure = (await probe.probeNative()) ?? (await probe.probeOtherForms());
  return failure === undefined ? probe.result() : { kind: "failed", failure };
}

class Probe {
  readonly #request: ProbeRequest;
  readonly #checks: Record<string, boolean> = {};
  readonly #shares: Partial<Record<CallForm, Share>> = {};
  #answered = false;
  #last: ModelFailure | undefined;

  constructor(request: ProbeRequest) {
    this.#request = request;
  }

  /** A failure ends the probe: further requests would be useless. */
  async probeNative(): Promise<ModelFailure | undefined> {
    for (const check of CHECKS) {
      const failure = await this.#run("native", check, check.name);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  async probeOtherForms(): Promise<ModelFailure | undefined> {
    const { valid = 0, asked = 0 } = this.#shares.native ?? {};
    if (valid === asked) return undefined;
    for (const form of ["text", "held"] as const)
      for (const check of NEEDED) {
        const failure = await this.#run(form, check, check === ONE_CALL ? OTHER_FORMS[form] : null);
        if (failure !== undefined) return failure;
      }
    return undefined;
  }

  result(): ProbeResult {
    if (!this.#answered && this.#last !== undefined) return { kind: "failed", failure: this.#last };
    const checks = this.#checks;
    const native = NEEDED.every(({ name }) => checks[name] === true);
    const usable = native || checks[OTHER_FORMS.text] === true || checks[OTHER_FORMS.held] === true;
    const shares = this.#shares;
    const best = PREFERRED.toSorted((one, other) => shareOf(shares[other]) - shareOf(shares[one]))[0];
    const calls = best === undefined || shareOf(shares[best]) === 0 ? "text" : best;
    return { kind: "made", native, usable, calls, shares, checks };
  }

  async #run(form: CallForm, check: Check, name: string | null): Promise<ModelFailure | undefined> {
    const provider = {
      native: this.#request.native,
      text: this.#request.written,
      held: this.#request.withSchema,
    }[form];
    if (provider === undefined) return undefined;
    const { valid, asked, failure } = await runCheck(provider, this.#request, check, form);
    if (failure !== undefined && !MODEL_FAILURES.has(failure.kind)) return failure;
    this.#answered ||= failure === undefined || failure.kind === "empty";
    this.#last = failure;
    if (NEEDED.includes(check)) {
      const before = this.#shares[form] ?? { valid: 0, asked: 0 };
      this.#shares[form] = { valid: before.valid + valid, asked: before.asked + asked };
    }
    if (name === null) return undefined;
    this.#checks[name] = valid > 0;
    this.#request.onCheck(name, valid > 0);
    return undefined;
  }
}

const PREFERRED: readonly CallForm[] = ["native", "held", "text"];

const shareOf = (share: Share | undefined): number =>
  share === undefined || share.asked === 0 ? 0 : share.valid / share.asked;

/** `failure` is set if no attempt completed, or if further attempts would be useless. */
interface CheckOutcome extends Share {
  readonly failure?: ModelFailure;
}

/** Repeats a measured check at every temperature, any other check until it passes. */
async function runCheck(
  provider: Provider,
  request: ProbeRequest,
  check: Check,
  form: CallForm,
): Promise<CheckOutcome> {
  let failure: ModelFailure | undefined;
  let answered = false;
  let valid = 0;
  let count = 0;
  for (const temperature of TEMPERATURES) {
    const seen = await replyOf(provider, request, {
      ...requestFor(request.model, check),
      temperature,
      ...(form === "held" ? { hold: { now: true } } : {}),
    });
    count += 1;
    if ("kind" in seen) {
      failure = seen;
      if (!MODEL_FAILURES.has(seen.kind)) return { valid, asked: count, failure };
      continue;
    }
    answered = true;
    if (check.passes(seen) && (form !== "native" || seen.native >= seen.calls.length)) valid += 1;
    if (valid > 0 && !NEEDED.includes(check)) break;
  }
  const share = { valid, asked: count };
  return answered || failure === undefined ? share : { ...share, failure };
}

async function replyOf(
  provider: Provider,
  { signal, onWait }: ProbeRequest,
  asks: ModelRequest,
): Promise<ObservedReply | ModelFailure> {
  const native = new Set<number>();
  for await (const event of provider.stream(asks, signal)) {
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

/** The result of probing one model on one server. */
export interface ProbeRecord {
  /** The name as requested, tag included. */
  readonly model: string;
  readonly server: string;
  /** Empty if the server reports none. */
  readonly version: string;
  /** Native calls work. */
  readonly native: boolean;
  /** The form that runs use; missing in older records. */
  readonly calls?: CallForm;
  readonly shares?: Shares;
  /** Results by the name of the check. */
  readonly checks: Readonly<Record<string, boolean>>;
  /** ISO 8601. */
  readonly at: string;
}

export type ProbeSubject = Pick<ProbeRecord, "model" | "server" | "version">;

const MAX_RECORDS = 500;

const boundedText = z.string().max(1000);
const tries = z.number().int().min(0);
const share = z.object({ valid: tries, asked: tries });
const record = z.object({
  model: boundedText,
  server: boundedText,
  version: boundedText,
  native: z.boolean(),
  calls: z.enum(CALL_FORMS).exactOptional(),
  shares: z.partialRecord(z.enum(CALL_FORMS), share).exactOptional(),
  checks: z.record(z.string(), z.boolean()),
  at: boundedText,
});
const file = z.object({ version: z.literal(1), probes: z.array(record) });

const placeOf = (stateDir: string): string => path.join(stateDir, "probes.json");

/** Every record; empty if the file is missing or unreadable, since a probe can be repeated. */
export async function readProbes(stateDir: string): Promise<readonly ProbeRecord[]> {
  try {
    return file.parse(JSON.parse(await readFile(placeOf(stateDir), "utf8"))).probes;
  } catch {
    return [];
  }
}

/** The version has to match too: a newer server may read calls differently. */
export const recordOn = (
  probes: readonly ProbeRecord[],
  { model, server, version }: ProbeSubject,
): ProbeRecord | undefined =>
  probes.findLast((each) => each.model === model && each.server === server && each.version === version);

/** The form of calls that runs use, according to the probe. */
export const callsOf = ({ calls, native }: ProbeRecord): CallForm => calls ?? (native ? "native" : "text");

/** Stores a record and drops an older one on the same subject; the file is replaced as a whole or not at all. */
export async function writeProbe(stateDir: string, made: ProbeRecord): Promise<void> {
  const others = (await readProbes(stateDir)).filter((each) => recordOn([each], made) === undefined);
  const probes = [...others, made].slice(-MAX_RECORDS);
  const place = placeOf(stateDir);
  makeFolder(stateDir);
  await replaceFile(place, `${JSON.stringify({ version: 1, probes }, undefined, 2)}\n`, { lasts: "content" });
}

/** Copies one state folder's probes to another, so that runs with their own state call in the same form. */
export async function copyProbes(from: string, to: string): Promise<void> {
  for (const each of await readProbes(from)) await writeProbe(to, each);
}
