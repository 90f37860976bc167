import { readLiteral, same } from "./literals.ts";
import { type Found, isRecord } from "./reading.ts";

const NAMES = ["name", "tool", "tool_name", "function", "function_name", "action", "recipient_name"] as const;
const ARGS = [
  "arguments",
  "args",
  "parameters",
  "params",
  "input",
  "tool_input",
  "action_input",
  "kwargs",
] as const;
const BESIDE = new Set(["id", "type", "tool_call_id", "call_id", "index", "tool_use_id"]);
const ENVELOPES = ["function", "tool_call", "function_call", "tool_calls", "call"] as const;
const TYPES = new Set(["function", "tool_call", "tool_use", "function_call", "call", "tool"]);
/** Every key that a call can begin with. */
export const CALL_KEYS: ReadonlySet<string> = new Set([...NAMES, ...ARGS, ...BESIDE, ...ENVELOPES]);
export const ARGUMENT_KEYS: ReadonlySet<string> = new Set(ARGS);

/** Why an object is none: it is something else, or a call that cannot be run. */
export type Shape =
  | { readonly found: readonly Found[] }
  | { readonly found: undefined; readonly reason: string };

const FOREIGN = 'a call is {"name": …, "arguments": {…}} and nothing else';
const other = (reason: string = FOREIGN): Shape => ({ found: undefined, reason });

/** The calls that a value describes: one object, a list of them, or an envelope round them. */
export function callsIn(value: unknown, repaired: boolean, depth = 0): Shape {
  if (depth > 4) return other();
  if (Array.isArray(value)) {
    const found: Found[] = [];
    for (const each of value) {
      const shape = isRecord(each) ? callsIn(each, repaired, depth + 1) : other();
      if (shape.found === undefined) return shape;
      found.push(...shape.found);
    }
    return { found };
  }
  if (!isRecord(value)) return other();
  const envelope = ENVELOPES.find((key) => typeof value[key] === "object" && value[key] !== null);
  if (envelope === undefined) return callOf(value, repaired);
  const clean = Object.keys(value).every((key) => key === envelope || BESIDE.has(key));
  return clean ? callsIn(value[envelope], repaired, depth + 1) : other();
}

function callOf(value: Readonly<Record<string, unknown>>, repaired: boolean): Shape {
  const keys = Object.keys(value);
  const names = NAMES.filter((key) => key in value);
  const bodies = ARGS.filter((key) => key in value);
  const [first] = names;
  const name = first === undefined ? undefined : value[first];
  if (typeof name !== "string" || name === "") return other("the call has no name");
  if (keys.length > names.length + bodies.length + beside(value)) return other();
  if (names.some((key) => value[key] !== name)) return other("the call has two names");
  const [body] = bodies;
  if (body === undefined) return { found: [{ name, args: undefined, repaired }] };
  const args = parsed(value[body]);
  if (bodies.some((key) => !same(parsed(value[key]).value, args.value)))
    return {
      found: [{ name, args: {}, repaired, broken: "the call has two sets of arguments that differ" }],
    };
  if (isDefinition(args.value)) return other("this is the definition of a tool");
  return { found: [{ name, args: args.value, repaired: repaired || args.repaired }] };
}

const beside = (value: Readonly<Record<string, unknown>>): number => {
  const { type } = value;
  if (typeof type === "string" && !TYPES.has(type)) return 0;
  return Object.keys(value).filter((key) => BESIDE.has(key)).length;
};

const isDefinition = (args: unknown): boolean =>
  isRecord(args) && args["type"] === "object" && isRecord(args["properties"]);

/** Arguments that came as JSON text, once or twice over. */
function parsed(args: unknown, again = true): { value: unknown; repaired: boolean } {
  if (typeof args !== "string") return { value: args, repaired: false };
  const read = readLiteral(args, 0);
  if (!read.ok || args.slice(read.end).trim() !== "") return { value: args, repaired: false };
  if (typeof read.value === "string" && again) return parsed(read.value, false);
  return { value: read.value, repaired: read.repaired };
}
