import type { ProgramPlace } from "./decision.ts";
import { type Cause } from "./errors.ts";
import * as z from "zod";
import type { Box, ExecResult } from "./ports.ts";
import type { JsonSchema } from "./model-provider.ts";
import { nearest } from "./text/spelling.ts";

interface Ended {
  /** As the tool gives it; what goes to the model is bounded by whoever called. */
  readonly text: string;
  /** Where the full output is kept, when the text is not all of it. */
  readonly full?: string;
  /** Of the command that it ran. */
  readonly exitCode?: number;
  /** Most memory and processes of that command at a time. */
  readonly peak?: ExecResult["peak"];
  /** Why it ended as it did, for people; the first line of the text says so where it is left out. */
  readonly reason?: string;
  /** It wrote what was there already: nothing is changed by it. */
  readonly unchanged?: true;
  /** A hook was asked behind it: it may have put what this says in other words, and have written the file once more. */
  readonly hooked?: true;
  /** It was of a file that the model had not read: the text holds that file, and it counts as read. */
  readonly missed?: "unread";
}

/** Every way a tool call can end. Nothing throws into the loop. `blocked` is a refusal by the tool or the walls. */
export type ToolResult =
  | (Ended & { readonly kind: "ok" })
  | (Ended & { readonly kind: "failed" | "blocked" | "denied"; readonly cause: Cause })
  | (Ended & { readonly kind: "invalid"; readonly issues: readonly string[] })
  | (Ended & { readonly kind: "timed_out"; readonly cause: "timeout" })
  /** Tools say `user`; whoever has their signal knows what cut them off. */
  | (Ended & { readonly kind: "cancelled"; readonly cause: Cause | null });

/** What a call will touch, stated before it runs, for the policy to judge. */
export interface Facts {
  /** Shell texts. */
  readonly commands: readonly string[];
  /** Where they start; the workspace when left out. */
  readonly folder?: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Names, with a port where it is another than those of the web. */
  readonly hosts: readonly string[];
  /** Those that the user's own settings name for this very tool: granted to it, and to nothing else. */
  readonly services?: readonly string[];
  /** What it starts goes on when the call has ended. */
  readonly lasting?: true;
  /** A program that somebody added does the work, in a way that no list here tells: where it runs. */
  readonly program?: ProgramPlace;
}

export const NO_FACTS: Facts = { commands: [], reads: [], writes: [], hosts: [] };

interface ToolWords<I> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<I>;
  /** Whether it may run side by side with other calls of the same reply. */
  readonly concurrent: boolean | ((input: I) => boolean);
  /** Its text bounds itself, and is not kept for `show_full`. */
  readonly bounded?: true;
  /** What to do instead, for arguments that models know from other tools. */
  readonly instead?: Readonly<Record<string, string>>;
  /** What it writes, whole, as lines of a diff: for a person who is asked. */
  readonly shown?: (input: I) => string;
}

/**
 * What the model can do. `run` never throws but for the loss of the box, or for a part of it that waits
 * for a person; the input is frozen.
 */
export type Tool<I> = ToolWords<I> &
  (
    | {
        readonly where: "box";
        facts(input: I): Facts;
        run(input: I, box: Box, signal: AbortSignal): Promise<ToolResult>;
      }
    | {
        readonly where: "session";
        facts(input: I): Facts;
        run(input: I, signal: AbortSignal): Promise<ToolResult>;
      }
    /** In the box as well; what it does depends on what was read to state its facts, so that is read once. */
    | { readonly where: "stated"; state(input: I): StatedCall<Box> }
  );

/** What a call touches as things are at this moment, and its work in just that state. */
export interface StatedCall<B> {
  readonly facts: Facts;
  readonly run: (box: B, signal: AbortSignal) => Promise<ToolResult>;
  /** What it writes, whole, as lines of a diff: for a person who is asked. */
  readonly shown?: () => string;
}

/** A call whose input has been read, with nothing done yet. Made once for each call, and carried to its end. */
export interface PreparedCall {
  readonly kind: "prepared";
  /** Taken when the call's turn comes: an earlier call of the same reply may have moved the shell. */
  state(): StatedCall<() => Promise<Box>>;
  readonly concurrent: boolean;
  readonly bounded: boolean;
}

export interface InvalidCall {
  readonly kind: "invalid";
  readonly issues: readonly string[];
}

/** A tool as the loop sees it, whatever its input is. */
export interface AnyTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  prepare(args: unknown): PreparedCall | InvalidCall;
}

export function anyTool<I>(tool: Tool<I>): AnyTool {
  const { name, description, input, concurrent, bounded = false, instead = {} } = tool;
  const schema = schemaOf(input);
  return {
    name,
    description,
    schema,
    prepare: (args) => {
      const parsed = input.safeParse(args);
      if (!parsed.success) return { kind: "invalid", issues: issuesOf(parsed.error, schema, instead) };
      const given = frozen(parsed.data);
      return {
        kind: "prepared",
        state: () => stated(tool, given),
        concurrent: typeof concurrent === "function" ? concurrent(given) : concurrent,
        bounded,
      };
    },
  };
}

/** The box is asked for only by a tool that works in one. */
function stated<I>(tool: Tool<I>, given: I): StatedCall<() => Promise<Box>> {
  const { shown } = tool;
  const work = workOf(tool, given);
  return shown === undefined ? work : { ...work, shown: () => shown(given) };
}

function workOf<I>(tool: Tool<I>, given: I): StatedCall<() => Promise<Box>> {
  switch (tool.where) {
    case "box":
      return {
        facts: tool.facts(given),
        run: async (box, signal) => tool.run(given, await box(), signal),
      };
    case "session":
      return { facts: tool.facts(given), run: async (_, signal) => tool.run(given, signal) };
    case "stated": {
      const { facts, run } = tool.state(given);
      return { facts, run: async (box, signal) => run(await box(), signal) };
    }
  }
}

/** Bounds are said to whoever breaks them. */
const UNSAID: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
]);

/** Short: each word of it is in every request. That nothing else may be given is said to whoever does. */
function schemaOf(input: z.ZodType): JsonSchema {
  const {
    $schema: _,
    additionalProperties: __,
    ...schema
  } = z.toJSONSchema(input, {
    io: "input",
    override: ({ jsonSchema }) => {
      for (const key of Object.keys(jsonSchema)) if (UNSAID.has(key)) Reflect.deleteProperty(jsonSchema, key);
    },
  });
  return schema;
}

const issuesOf = (
  { issues }: z.ZodError,
  schema: JsonSchema,
  instead: Readonly<Record<string, string>>,
): readonly string[] =>
  issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => unknownKey(key, issue.path, schema, instead))
      : issueText(issue),
  );

function issueText({ path, message }: Pick<z.core.$ZodIssue, "path" | "message">): string {
  const at = path.map(String).join(".");
  return at === "" ? message : `${at}: ${message}`;
}

/** Of what is written as an argument no more than this is told. */
const MAX_KEY_LENGTH = 60;

function unknownKey(
  key: string,
  path: readonly PropertyKey[],
  schema: JsonSchema,
  instead: Readonly<Record<string, string>>,
): string {
  const known = Object.keys(propertiesAt(schema, path));
  const near = nearest(key.toLowerCase().replaceAll("-", "_"), known);
  const named = JSON.stringify(key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`);
  const hint = Object.hasOwn(instead, key)
    ? `; ${instead[key]}`
    : near === undefined
      ? ""
      : `; did you mean ${JSON.stringify(near)}?`;
  return issueText({ path: [...path], message: `there is no ${named}, only ${known.join(", ")}${hint}` });
}

/** The arguments that a place of the input has. */
function propertiesAt(schema: JsonSchema, path: readonly PropertyKey[]): object {
  let at: unknown = schema;
  for (const step of path)
    at = typeof step === "number" ? inner(at, "items") : inner(inner(at, "properties"), step);
  const found = inner(at, "properties");
  return typeof found === "object" && found !== null ? found : {};
}

const inner = (value: unknown, key: PropertyKey): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const inner of Object.values(value)) frozen(inner);
    Object.freeze(value);
  }
  return value;
}
