import assert from "node:assert/strict";
import test from "node:test";
import { readdir, stat } from "node:fs/promises";
import type {
  FailureKind,
  ModelRequest,
  Provider,
  ProviderEvent,
  ToolCall,
} from "../../src/core/model-provider.ts";
import {
  callsOf,
  probeCalls,
  type ProbeRecord,
  type ProbeResult,
  readProbes,
  recordOn,
  writeProbe,
} from "../../src/models/model-probe.ts";
import { scratch } from "../fixtures/scratch.ts";

const USAGE = { requests: 1, prompt_tokens: 1, completion_tokens: 1, cached_tokens: null, cost: null };
const CODE = 'function f() {\n  return {"a": [1, 2]};\n}';

type Reply = readonly ProviderEvent[];

function replied(calls: readonly Omit<ToolCall, "id">[], text: string, native: boolean): Reply {
  const made = calls.map((call, index) => ({ ...call, id: `c${index}` }));
  return [
    ...(native ? made.map(({ name }, index) => ({ type: "call", index, name, text: "" }) as const) : []),
    {
      type: "finished",
      message: { role: "assistant", text, calls: made },
      malformed: [],
      usage: USAGE,
      stop: made.length > 0 ? "calls" : "end",
      notes: [],
    },
  ];
}

const failing = (kind: FailureKind): Reply => [
  { type: "failed", failure: { kind, reason: "so it is", remedy: "do this" }, usage: USAGE },
];

const read = (title: string): Omit<ToolCall, "id"> => ({ name: "read_note", args: { title } });
const write = (text: string): Omit<ToolCall, "id"> => ({ name: "write_note", args: { title: "code", text } });

/** What a good model does with each prompt. */
function good({ messages }: ModelRequest, native = true): Reply {
  const prompt = messages.at(-1)?.text ?? "";
  if (prompt.startsWith("Two notes")) return replied([read("alpha"), read("beta")], "", native);
  if (prompt.includes("write_note")) return replied([write(CODE)], "I keep it.", native);
  if (prompt.startsWith("Call no tool")) return replied([], 'It is a call: {"name": "read_note"}', native);
  return replied([read("alpha")], "", native);
}

function provider(reply: (request: ModelRequest, asked: number) => Reply): Provider {
  let asked = 0;
  return {
    async *stream(request) {
      asked += 1;
      yield* await Promise.resolve(reply(request, asked));
    },
    capabilities: () => Promise.reject(new Error("not asked for")),
  };
}

async function probed(
  native: Provider,
  written = provider(() => failing("empty")),
  held: Provider | null = null,
) {
  const lines: string[] = [];
  const result = await probeCalls({
    model: "qwen3:8b",
    native,
    written,
    ...(held === null ? {} : { withSchema: held }),
    signal: new AbortController().signal,
    onWait: (ms, reason) => lines.push(`${ms}: ${reason}`),
    onCheck: (name, passed) => lines.push(`${name}: ${passed}`),
  });
  return { result, lines };
}

/** A model whose native calls always succeed. */
const ALL_NATIVE = { calls: "native", shares: { native: { valid: 4, asked: 4 } } } as const;

const made = (checks: Record<string, boolean>): ProbeResult => ({
  kind: "made",
  native: true,
  usable: true,
  ...ALL_NATIVE,
  checks,
});

const ALL = {
  "one call": true,
  "two calls in one reply": true,
  "braces and newlines in a string": true,
  "JSON that is only quoted": true,
};

test("a model that passes every check calls natively", async () => {
  const { result, lines } = await probed(provider((request) => good(request)));
  assert.deepEqual(result, made(ALL));
  assert.deepEqual(
    lines,
    Object.keys(ALL).map((name) => `${name}: true`),
  );
});

test("a model gets a second attempt, because its replies vary", async () => {
  const { result } = await probed(
    provider((request, asked) => (asked % 2 === 1 ? replied([], "Hm.", true).slice(0) : good(request))),
  );
  assert.deepEqual(result.kind === "made" && result.native, true);
});

test("a model that makes one call a reply, or takes quoted JSON for a call, is still usable", async () => {
  const { result } = await probed(
    provider((request) => {
      const prompt = request.messages.at(-1)?.text ?? "";
      if (prompt.startsWith("Two notes") || prompt.startsWith("Call no tool"))
        return replied([read("alpha")], "", true);
      return good(request);
    }),
  );
  const checks = { ...ALL, "two calls in one reply": false, "JSON that is only quoted": false };
  assert.deepEqual(result, made(checks));
});

test("calls that are only read from text are not native, but usable", async () => {
  const { result } = await probed(
    provider((request) => good(request, false)),
    provider((request) => good(request, false)),
  );
  assert.deepEqual(result, {
    kind: "made",
    native: false,
    usable: true,
    calls: "text",
    shares: { native: { valid: 0, asked: 4 }, text: { valid: 4, asked: 4 } },
    checks: {
      "one call": false,
      "two calls in one reply": false,
      "braces and newlines in a string": false,
      "JSON that is only quoted": true,
      "a call written as text": true,
    },
  });
});

/** Replies with a valid call to some of the measured requests. */
const sometimes = (natively: boolean, right: (asked: number) => boolean): Provider =>
  provider((request, asked) => (right(asked) ? good(request, natively) : replied([], "Hm.", natively)));

const share = (valid: number): string => `{"valid":${valid},"asked":4}`;

const formOf = async (native: Provider, written: Provider, held: Provider | null): Promise<unknown> => {
  const { result } = await probed(native, written, held);
  return result.kind === "made" && `${result.calls} ${JSON.stringify(Object.values(result.shares))}`;
};

test("the form with the most valid calls wins; in a tie native comes first, then a schema", async () => {
  const never = sometimes(false, () => false);
  const always = sometimes(false, () => true);
  const odd = sometimes(false, (asked) => asked % 2 === 1);
  assert.equal(await formOf(never, odd, always), `held [${share(0)},${share(2)},${share(4)}]`);
  assert.equal(await formOf(never, always, always), `held [${share(0)},${share(4)},${share(4)}]`);
  assert.equal(await formOf(never, never, null), `text [${share(0)},${share(0)}]`);
  assert.equal(
    await formOf(
      provider((request) => good(request)),
      never,
      always,
    ),
    `native [${share(4)}]`,
  );
});

test("only the form with a schema requests one, and the second attempt has a higher temperature", async () => {
  const seen: string[] = [];
  const noting = (form: string, reply: (request: ModelRequest) => Reply): Provider =>
    provider((request) => {
      seen.push(`${form} ${request.hold?.now ?? "free"} ${request.temperature}`);
      return reply(request);
    });
  await probed(
    noting("native", (request) => good(request, false)),
    noting("text", (request) => good(request, false)),
    noting("held", (request) => good(request, false)),
  );
  const forms = (form: string): readonly string[] => [
    ...new Set(seen.filter((line) => line.startsWith(form))),
  ];
  assert.deepEqual(forms("native"), ["native free 0", "native free 0.7"]);
  assert.deepEqual(forms("text"), ["text free 0", "text free 0.7"]);
  assert.deepEqual(forms("held"), ["held true 0", "held true 0.7"]);
});

test("a native call with an altered string does not count as working", async () => {
  const { result } = await probed(
    provider((request) =>
      (request.messages.at(-1)?.text ?? "").includes("write_note")
        ? replied([write(CODE.replaceAll("\n", " "))], "", true)
        : good(request),
    ),
    provider((request) => good(request, false)),
  );
  assert.deepEqual(result.kind === "made" && [result.native, result.usable], [false, true]);
});

test("a model with no valid call is unusable", async () => {
  const { result } = await probed(provider(() => failing("empty")));
  assert.deepEqual(result.kind === "made" && [result.native, result.usable], [false, false]);
});

for (const kind of ["unreachable", "no_model", "out_of_memory", "timeout", "cancelled"] as const)
  test(`a probe that ends as ${kind} has no result`, async () => {
    const { result } = await probed(provider(() => failing(kind)));
    assert.deepEqual(result, {
      kind: "failed",
      failure: { kind, reason: "so it is", remedy: "do this" },
    });
  });

for (const kind of ["garbled", "server"] as const)
  test(`a probe whose every reply fails as ${kind} has no result about the model`, async () => {
    const { result } = await probed(
      provider(() => failing(kind)),
      provider(() => failing(kind)),
    );
    assert.deepEqual(result, { kind: "failed", failure: { kind, reason: "so it is", remedy: "do this" } });
  });

test("a wait is reported, and does not affect the result", async () => {
  const waiting: ProviderEvent = { type: "waiting", reason: "busy", ms: 20, attempt: 2 };
  const { result, lines } = await probed(provider((request) => [waiting, ...good(request)]));
  assert.deepEqual(result, made(ALL));
  assert.deepEqual(lines.slice(0, 3), ["20: busy", "20: busy", "one call: true"]);
});

const RECORD: ProbeRecord = {
  model: "qwen3:8b",
  server: "http://127.0.0.1:11434",
  version: "0.12.6",
  native: true,
  checks: { "one call": true },
  at: "2026-10-17T23:14:07.414Z",
};

test("a record is found only under the same model, server and version", async () => {
  await using place = await scratch();
  const state = place.at("a/state");
  await writeProbe(state, RECORD);
  const probes = await readProbes(state);
  const subjects = [
    RECORD,
    { ...RECORD, model: "qwen3:4b" },
    { ...RECORD, server: "http://box:11434" },
    { ...RECORD, version: "0.12.7" },
  ];
  assert.deepEqual(
    subjects.map((subject) => recordOn(probes, subject)),
    [RECORD, undefined, undefined, undefined],
  );
});

test("a newer record replaces the older one, and nothing else is left in the folder", async () => {
  await using place = await scratch();
  const other = { ...RECORD, model: "qwen3:4b" };
  const newer = { ...RECORD, native: false };
  for (const record of [RECORD, other, newer]) await writeProbe(place.path, record);
  assert.deepEqual(await readProbes(place.path), [other, newer]);
  assert.deepEqual(await readdir(place.path), ["probes.json"]);
  assert.equal((await stat(place.at("probes.json"))).mode & 0o777, 0o600);
});

test("an unreadable file counts as empty, and is replaced", async () => {
  for (const text of ["", "{", '{"version":2,"probes":[]}', '{"version":1,"probes":[{"model":7}]}']) {
    await using place = await scratch({ "probes.json": text });
    assert.deepEqual(await readProbes(place.path), []);
    await writeProbe(place.path, RECORD);
    assert.deepEqual(await readProbes(place.path), [RECORD]);
  }
});

test("an unwritable folder is an error, and nothing is left behind", async () => {
  await using place = await scratch({ state: "a file" });
  await assert.rejects(writeProbe(place.at("state"), RECORD));
  assert.deepEqual(await readdir(place.path), ["state"]);
});

test("the best form is kept; an older record without forms means native or text", async () => {
  await using place = await scratch();
  const held: ProbeRecord = {
    ...RECORD,
    native: false,
    calls: "held",
    shares: { native: { valid: 0, asked: 4 }, held: { valid: 4, asked: 4 } },
  };
  await writeProbe(place.path, held);
  assert.deepEqual(await readProbes(place.path), [held]);
  assert.deepEqual([held, RECORD, { ...RECORD, native: false }].map(callsOf), ["held", "native", "text"]);
});
