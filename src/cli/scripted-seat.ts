import type { Settings } from "../config/schema.ts";
import { HarnessError } from "../core/errors.ts";
import { makeProvider } from "../models/provider.ts";
import { readScenario } from "../models/scripted/read.ts";
import { scriptedCapabilities, ScriptedWire } from "../models/scripted/wire.ts";
import { WireFailure } from "../models/wire.ts";
import { limitsOf } from "./model-limits.ts";
import type { ModelSeat } from "./model-seat.ts";

/** The model is the scenario's file. */
export function scriptedSeat(settings: Settings): ModelSeat {
  return {
    server: "a scenario file",
    list: () => Promise.resolve({ models: [settings.chat_model], reason: "" }),
    capabilities: (model) => Promise.resolve(scriptedCapabilities(readScenario(model))),
    subject: (model) => Promise.resolve({ model, server: "scripted", version: "" }),
    provider: (tools) => {
      // Played from its first step by whoever asks first: one provider is one performance.
      const wires = new Map<string, ScriptedWire>();
      const wireOf = (model: string): ScriptedWire => {
        const wire = wires.get(model) ?? new ScriptedWire(readScenario(model));
        wires.set(model, wire);
        return wire;
      };
      return makeProvider(
        { send: (request, signal) => asked(wireOf, request.model).send(request, signal) },
        {
          limits: limitsOf(settings),
          prices: settings.prices,
          capabilities: (model) => {
            const believed = scriptedCapabilities(readScenario(model));
            return Promise.resolve(tools === undefined ? believed : { ...believed, tools });
          },
        },
      );
    },
  };
}

/** A scenario that is missing or broken is a model that is not there. */
function asked(wireOf: (model: string) => ScriptedWire, model: string): ScriptedWire {
  try {
    return wireOf(model);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    throw new WireFailure("no_model", thrown.message, { remedy: thrown.remedy });
  }
}
