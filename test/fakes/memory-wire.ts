import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { type ModelWire, type WireEvent, WireFailure, type WireRequest } from "../../src/models/model-api.ts";
import {
  type Answered,
  isRefused,
  NO_UTF8,
  type Opened,
  type Part,
  type Refused,
  type Reply,
  replyAt,
  type Scenario,
} from "../contract/provider-server.ts";

/** A server and its adapter in one, without a network: turns a scenario into wire events. */
export function memoryServer(scenario: Scenario): Promise<Opened> {
  let requests = 0;
  return Promise.resolve(
    recorded({
      holds: "after_thinking",
      send: (_request, signal) => {
        requests += 1;
        return play(replyAt(scenario, requests - 1), signal);
      },
    }),
  );
}

/** A wire without a server that records its requests. */
export function recorded(inner: ModelWire): Opened {
  const asked: WireRequest[] = [];
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const wire: ModelWire = {
    ...(inner.holds === undefined ? {} : { holds: inner.holds }),
    send: (request, signal) => {
      signal.addEventListener("abort", () => leave(), { once: true });
      asked.push(request);
      return inner.send(request, signal);
    },
  };
  return {
    wire,
    asked: () =>
      asked.map(({ nativeTools, tools, ...rest }) => ({
        tools: nativeTools ? tools.map(({ name }) => name) : [],
        body: JSON.stringify({ ...rest, tools: nativeTools ? tools : [] }),
      })),
    left,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function* play(answered: Answered, signal: AbortSignal): AsyncGenerator<WireEvent> {
  if (isRefused(answered)) throw refusal(answered);
  for (const [index, part] of answered.parts.entries()) yield* playPart(part, index, answered, signal);
  if (answered.ends === "endless") yield* repeat(answered, signal);
  if (answered.ends === "cut")
    throw new WireFailure("garbled", "the stream ended in the middle", { passing: true });
  if (answered.ends === "silent") await sleep(60_000, undefined, { signal });
  const { usage, stop, parts } = answered;
  if (usage !== undefined) yield { type: "usage", ...usage };
  yield { type: "stop", stop: stop ?? (parts.some(({ type }) => type === "call") ? "calls" : "end") };
}

async function* repeat(reply: Reply, signal: AbortSignal): AsyncGenerator<WireEvent> {
  const last = reply.parts.at(-1) ?? { type: "text", text: "" };
  for (;;) {
    await turn(undefined, { signal });
    yield* playPart(last, 0, reply, signal);
  }
}

async function* playPart(
  part: Part,
  index: number,
  { slice }: Reply,
  signal: AbortSignal,
): AsyncGenerator<WireEvent> {
  switch (part.type) {
    case "text":
    case "thinking": {
      const text = part.text.replaceAll(NO_UTF8, "\u{FFFD}");
      for (const piece of pieces(text, slice)) yield { type: part.type, text: piece };
      return;
    }
    case "call": {
      const { name, id, args } = part;
      yield { type: "call", index, name, ...(id === undefined ? {} : { id }) };
      for (const piece of pieces(args, slice)) yield { type: "call", index, args: piece };
      return;
    }
    case "pause":
      await sleep(part.ms, undefined, { signal });
      return;
    case "error":
      throw new WireFailure("server", part.message);
    case "garbage":
      throw new WireFailure("garbled", `what came is no event: ${part.text}`);
  }
}

export function pieces(text: string, slice = text.length): readonly string[] {
  const size = Math.max(slice, 1);
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  );
}

const passing = { passing: true };

function refusal({ refuses, retryAfter, says = "" }: Refused): WireFailure {
  const retryAfterMs = retryAfter === undefined ? null : retryAfter * 1000;
  switch (refuses) {
    case "no_schema":
      return new WireFailure("server", `it holds no reply ${says}`, { refusesHold: true });
    case "no_tools":
      return new WireFailure("refused", `it takes no tools ${says}`, { refusesTools: true });
    case "error_in_200":
      return new WireFailure("server", `error: ${says}`);
    case "server":
      return new WireFailure("server", `500 ${says}`, passing);
    case "rate_limited":
      return new WireFailure("rate_limited", `429 ${says}`, { ...passing, retryAfterMs });
    case "unauthorised":
    case "no_model":
    case "too_long":
    case "unreachable":
      return new WireFailure(refuses, `${refuses} ${says}`);
  }
}
