/** What the model can do, and what users add to a run: tools, their results, hooks. */
import * as z from "zod";
import type { ProgramPlace } from "./decision.ts";
import type { Cause } from "./errors.ts";
import type { Box, ExecResult } from "./ports.ts";
import type { JsonSchema, ToolCall } from "./model-provider.ts";
import { truncate, nearest } from "./wording.ts";
import type { AgentEvent, Emit } from "./events.ts";
import type { HookOwner } from "./added-programs.ts";

interface ResultFields {
  /** The tool's whole text; the caller limits what goes to the model. */
  readonly text: string;
  /** Where the full output is kept, when the text is not all of it. */
  readonly full?: string;
  /** Exit code of the command that it ran. */
  readonly exitCode?: number;
  /** Most memory and processes of that command at a time. */
  readonly peak?: ExecResult["peak"];
  /** Why it ended that way, for people; left out when the first line of the text says so. */
  readonly reason?: string;
  /** The tool wrote what was there already, and changed nothing. */
  readonly unchanged?: true;
  /** A hook ran afterwards, and may have replaced the text or written the file again. */
  readonly hooked?: true;
  /** The model had not read the file: the text contains it, and it counts as read now. */
  readonly missed?: "unread";
}

/** Every way a tool call can end. Nothing throws into the loop. `blocked` is a refusal by the tool or the box. */
export type ToolResult =
  | (ResultFields & { readonly kind: "ok" })
  | (ResultFields & { readonly kind: "failed" | "blocked" | "denied"; readonly cause: Cause })
  | (ResultFields & { readonly kind: "invalid"; readonly issues: readonly string[] })
  | (ResultFields & { readonly kind: "timed_out"; readonly cause: "timeout" })
  /** Tools say `user`; the caller knows what aborted their signal. */
  | (ResultFields & { readonly kind: "cancelled"; readonly cause: Cause | null });

export const ok = (text: string): ToolResult => ({ kind: "ok", text });

export const failed = (text: string, cause: Cause = "program"): ToolResult => ({
  kind: "failed",
  cause,
  text,
});

/** The call was not run: the model is told what is wrong with it. */
export const notRun = (issue: string): ToolResult => ({ kind: "invalid", issues: [issue], text: issue });

/** What a call will touch, stated before it runs, for the policy to judge. */
export interface Facts {
  /** Shell texts. */
  readonly commands: readonly string[];
  /** Where they start; the workspace when left out. */
  readonly folder?: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Names, with a port unless it is 443. */
  readonly hosts: readonly string[];
  /** Hosts that the user's settings name for this tool; granted to this tool alone. */
  readonly services?: readonly string[];
  /** What it starts outlives the call. */
  readonly lasting?: true;
  /** Where an added program runs whose work these facts do not describe. */
  readonly program?: ProgramPlace;
}

export const NO_FACTS: Facts = { commands: [], reads: [], writes: [], hosts: [] };

interface ToolFields<I> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<I>;
  /** Whether it may run beside other calls of the same reply. */
  readonly concurrent: boolean | ((input: I) => boolean);
  /** Its text is limited already, and not kept for `show_full`. */
  readonly bounded?: true;
  /** For arguments that models know from other tools: what to do instead. */
  readonly instead?: Readonly<Record<string, string>>;
  /** For a person who is asked: everything that it writes, as lines of a diff. */
  readonly shown?: (input: I) => string;
}

/** What the model can do. The input is frozen. `run` throws only if the box is lost or a part waits for a person. */
export type Tool<I> = ToolFields<I> &
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
    /** Also runs in the box; facts and work depend on the same state, which is read once. */
    | { readonly where: "stated"; state(input: I): StatedCall<Box> }
  );

/** What a call touches at this moment, and its work in just that state. */
interface StatedCall<B> {
  readonly facts: Facts;
  readonly run: (box: B, signal: AbortSignal) => Promise<ToolResult>;
  /** For a person who is asked: everything that it writes, as lines of a diff. */
  readonly shown?: () => string;
}

/** A call whose input has been parsed; made once for each call. */
export interface PreparedCall {
  readonly kind: "prepared";
  /** Read when the call's turn comes: an earlier call of the same reply may have moved the shell. */
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
      const valid = deepFreeze(parsed.data);
      return {
        kind: "prepared",
        state: () => statedCall(tool, valid),
        concurrent: typeof concurrent === "function" ? concurrent(valid) : concurrent,
        bounded,
      };
    },
  };
}

/** Opens the box only for a tool that works in one. */
function statedCall<I>(tool: Tool<I>, input: I): StatedCall<() => Promise<Box>> {
  const { shown } = tool;
  const work = workOf(tool, input);
  return shown === undefined ? work : { ...work, shown: () => shown(input) };
}

function workOf<I>(tool: Tool<I>, input: I): StatedCall<() => Promise<Box>> {
  switch (tool.where) {
    case "box":
      return {
        facts: tool.facts(input),
        run: async (box, signal) => tool.run(input, await box(), signal),
      };
    case "session":
      return { facts: tool.facts(input), run: async (_, signal) => tool.run(input, signal) };
    case "stated": {
      const { facts, run } = tool.state(input);
      return { facts, run: async (box, signal) => run(await box(), signal) };
    }
  }
}

/** Limits are told only when they are exceeded. */
const LEFT_OUT_OF_SCHEMA: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
]);

/** Kept short, because it is part of every request: unknown arguments are refused only when they are given. */
function schemaOf(input: z.ZodType): JsonSchema {
  const {
    $schema: _,
    additionalProperties: __,
    ...schema
  } = z.toJSONSchema(input, {
    io: "input",
    override: ({ jsonSchema }) => {
      for (const key of Object.keys(jsonSchema))
        if (LEFT_OUT_OF_SCHEMA.has(key)) Reflect.deleteProperty(jsonSchema, key);
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

/** Most characters of an argument that an issue repeats. */
const MAX_KEY_LENGTH = 60;

function unknownKey(
  key: string,
  path: readonly PropertyKey[],
  schema: JsonSchema,
  instead: Readonly<Record<string, string>>,
): string {
  const known = Object.keys(propertiesAt(schema, path));
  const near = nearest(key.toLowerCase().replaceAll("-", "_"), known);
  const named = JSON.stringify(truncate(key, MAX_KEY_LENGTH));
  const hint = Object.hasOwn(instead, key)
    ? `; ${instead[key]}`
    : near === undefined
      ? ""
      : `; did you mean ${JSON.stringify(near)}?`;
  return issueText({ path: [...path], message: `there is no ${named}, only ${known.join(", ")}${hint}` });
}

/** The arguments that exist at this place of the input. */
function propertiesAt(schema: JsonSchema, path: readonly PropertyKey[]): object {
  let at: unknown = schema;
  for (const step of path)
    at = typeof step === "number" ? propertyOf(at, "items") : propertyOf(propertyOf(at, "properties"), step);
  const found = propertyOf(at, "properties");
  return typeof found === "object" && found !== null ? found : {};
}

const propertyOf = (value: unknown, key: PropertyKey): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}

/**
 * What users add to a run, as its loop sees it. Everything that acts is a tool that is judged like any other, or a
 * command that runs in the box: nothing gets around the policy.
 */
export interface Extensions extends AsyncDisposable {
  /**
   * Added tools, listed after the built-in ones. Servers come, change and go; the returned list is the same object as
   * long as nothing changed, because another list makes model servers read the whole prompt again. No tool has the name
   * of a built-in one.
   */
  readonly tools: () => readonly AnyTool[];
  /** Added at the end of a new session's system prompt; empty when there is nothing. */
  readonly prompt: string;
  /** Call before a run's first request, and before each of a person: waits, within limits, for slow tools. */
  readonly ready?: () => Promise<void>;
  /** Ends what the extensions keep running in the box before it is parked. Only disposing follows. */
  readonly rest?: () => Promise<void>;
  /** Asked at fixed places of a run; left out when there are no hooks. */
  readonly hooks?: Hooks;
}

export const NO_EXTENSIONS: Extensions = {
  tools: () => NO_TOOLS,
  prompt: "",
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
const NO_TOOLS: readonly AnyTool[] = [];

/**
 * The answers of a run's hooks, as the loop sees them. Whatever hooks say is judged, guarded and recorded like the
 * model's words: they cannot approve anything. Rejects only when the box is lost.
 */
export interface Hooks {
  readonly before: (call: ToolCall, asker: HookAsker) => Promise<BeforeCall>;
  /** What the model is told of a result; undefined if no hook ran. A hook may also have changed files. */
  readonly after: (call: ToolCall, result: ToolResult, asker: HookAsker) => Promise<string | undefined>;
  /** After a number of continuations it is no longer asked, so that every request ends. */
  readonly stop: (answer: string, asker: HookAsker) => Promise<AtStop>;
  /** Call when a request of the user begins; the text follows the request to the model. Empty when there is none. */
  readonly begin: (asker: HookAsker) => Promise<string>;
  /** Text to keep word for word beside the summary of older messages; empty when there is none. */
  readonly compacting: (trigger: string, asker: HookAsker) => Promise<string>;
}

export const NO_HOOKS: Hooks = {
  before: ({ args }) => Promise.resolve({ kind: "goes_on", args }),
  after: () => Promise.resolve(undefined),
  stop: (text) => Promise.resolve({ kind: "answers", text }),
  begin: () => Promise.resolve(""),
  compacting: () => Promise.resolve(""),
};

/** What a hook call needs from the run. */
export interface HookAsker {
  /** Emits events of the agent that the hook runs for. */
  readonly emit: Emit;
  readonly signal: AbortSignal;
}

/** What becomes of a call before the policy judges it. */
export type BeforeCall =
  | {
      readonly kind: "goes_on";
      /** The same object if nothing was changed. */
      readonly args: ToolCall["args"];
      /** The hook that changed the arguments last; left out if none did. */
      readonly by?: string;
    }
  /** The call is not run. */
  | { readonly kind: "vetoed"; readonly by: string; readonly owner: HookOwner; readonly reason: string };

export type AtStop =
  | { readonly kind: "answers"; readonly text: string }
  /** The answer is not the end; this text goes to the model. */
  | { readonly kind: "continues"; readonly text: string };

/**
 * The answer of a request if a hook replaced the model's text. A reader that shows replies as they stream has to show
 * it at the end: no other event contains it.
 */
export class ReplacedAnswer {
  #replaced = false;

  /** The answer, on the event that ends the request; undefined if the model's own text is the answer. */
  take(event: AgentEvent): string | undefined {
    if (event.agent !== undefined) return undefined;
    switch (event.type) {
      case "run.started":
      case "turn.started":
        this.#replaced = false;
        return undefined;
      case "hook":
        this.#replaced ||= event.event === "Stop" && event.did === "replaced";
        return undefined;
      case "run.finished":
        return this.#replaced && event.status === "done" ? (event.answer ?? undefined) : undefined;
      default:
        return undefined;
    }
  }
}
