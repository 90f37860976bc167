import type { MalformedCall } from "../core/provider.ts";
import type { WireEvent } from "./wire.ts";
import { readArguments } from "./arguments.ts";
import { JsonEnds } from "./json-text.ts";
import type { OfferedTools } from "./text-calls/names.ts";
import { typed } from "./text-calls/schema.ts";
import type { ReadCall, ReadCalls } from "./written-calls.ts";

type CallPart = Extract<WireEvent, { readonly type: "call" }>;

class Made {
  id = "";
  name = "";
  args = "";
  readonly ends = new JsonEnds();
  readonly place: number;

  constructor(place: number) {
    this.place = place;
  }

  /** Servers that count wrongly give a second call the index of the first. */
  isOver({ id = "", name = "" }: CallPart): boolean {
    return (id !== "" && this.id !== "" && id !== this.id) || (name !== "" && this.ends.complete);
  }

  add({ id = "", name = "", args = "" }: CallPart): void {
    if (this.id === "") this.id = id;
    if (this.name === "") this.name = name;
    else if (name !== this.name && this.args === "") this.name += name;
    this.args += args;
    this.ends.push(args);
  }
}

/** Calls of the API's own format, put together from their parts by index. */
export class NativeCalls {
  readonly #made: Made[] = [];
  readonly #byIndex = new Map<number, Made>();

  /** The call that the part belongs to: its place among the calls of the reply, and its name so far. */
  take(part: CallPart): { readonly place: number; readonly name: string } {
    let call = this.#byIndex.get(part.index);
    if (call === undefined || call.isOver(part)) {
      call = new Made(this.#made.length);
      this.#made.push(call);
      this.#byIndex.set(part.index, call);
    }
    call.add(part);
    return call;
  }

  get some(): boolean {
    return this.#made.length > 0;
  }

  /** What can be run and what cannot, in the order in which they began. */
  end(tools: OfferedTools): ReadCalls {
    const calls: ReadCall[] = [];
    const malformed: MalformedCall[] = [];
    for (const { id, name: given, args } of this.#made) {
      const name = tools.resolve(given);
      if (name === undefined) {
        const read = readArguments(args);
        const meant = "wrong" in read ? {} : { args: read.args };
        malformed.push({ id, name: shown(given), reason: unknownName(given, tools), ...meant });
        continue;
      }
      const read = readArguments(args);
      if ("wrong" in read) malformed.push({ id, name, reason: read.wrong });
      else calls.push({ id, name, args: typed(read.args, tools.schema(name)) });
    }
    return { calls, malformed };
  }
}

/** A misspelling is told, never followed. */
function unknownName(given: string, tools: OfferedTools): string {
  const quoted = JSON.stringify(shown(given));
  if (tools.names.length === 0) return `No tool can be called now; ${quoted} was not run.`;
  const near = tools.near(given);
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  return `There is no tool ${quoted}; there are ${tools.names.join(", ")}.${hint}`;
}

const LONGEST_SHOWN = 80;
const shown = (name: string): string => name.slice(0, LONGEST_SHOWN).toWellFormed();
