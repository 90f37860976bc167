import { scenarioFrom } from "../../src/models/providers/scenario.ts";
import { ScriptedWire } from "../../src/models/providers/scripted-api.ts";
import { pieces, recorded } from "../fakes/memory-wire.ts";
import {
  type Answered,
  isRefused,
  NO_UTF8,
  type Opened,
  type Part,
  type Refused,
  type Scenario,
} from "./provider-server.ts";
import { providerSuite } from "./provider-suite.ts";

providerSuite("scripted", { open: scripted, lacks: { hold: "a scenario says what is answered" } });

/** The scenario as a file of the scripted model. */
function scripted({ replies }: Scenario): Promise<Opened> {
  const lines = replies.map((answered, index) => {
    const step = { reply: replyOf(answered), repeat: index === replies.length - 1 ? "forever" : 1 };
    return JSON.stringify(step);
  });
  return Promise.resolve(recorded(new ScriptedWire(scenarioFrom(lines.join("\n"), "contract.jsonl"))));
}

function replyOf(answered: Answered): readonly unknown[] {
  if (isRefused(answered)) return [refusal(answered)];
  const { parts, slice, ends = "done", usage, stop } = answered;
  const played = parts.flatMap((part, index) =>
    partsOf(part, slice, ends === "endless" && index === parts.length - 1 ? 1_000_000 : 1),
  );
  return [
    ...played,
    ...(ends === "cut" ? [{ cut: true }] : []),
    ...(ends === "silent" ? [{ delay: "1m" }] : []),
    ...(usage === undefined ? [] : [{ usage }]),
    ...(stop === undefined ? [] : [{ stop }]),
  ];
}

function partsOf(part: Part, slice: number | undefined, times: number): readonly unknown[] {
  switch (part.type) {
    case "text":
    case "thinking":
      return pieces(part.text.replaceAll(NO_UTF8, "\u{FFFD}"), slice).map((text) => ({
        [part.type]: text,
        times,
      }));
    case "call":
      return [{ call: part.name, args: part.args, ...(part.id === undefined ? {} : { id: part.id }) }];
    case "pause":
      return [{ delay: `${part.ms}ms` }];
    case "error":
      return [{ fail: "server", reason: part.message }];
    case "garbage":
      return [{ garbage: part.text }];
  }
}

function refusal({ refuses, retryAfter, says = "no" }: Refused): unknown {
  switch (refuses) {
    case "no_schema":
    case "no_tools":
      return { refuse_tools: true };
    case "error_in_200":
      return { fail: "server", reason: says };
    case "server":
    case "rate_limited": {
      const wait = retryAfter === undefined ? {} : { retry_after: `${retryAfter}s` };
      return { fail: refuses, reason: says, passing: true, ...wait };
    }
    case "unauthorised":
    case "no_model":
    case "too_long":
    case "unreachable":
      return { fail: refuses, reason: says };
  }
}
