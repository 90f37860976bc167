/**
 * Programs that the user or a trusted project adds: hooks at fixed places of a run, and tools. Their settings, and the
 * event of a hook.
 */
import * as z from "zod";
import { fitsWildcard, parseDuration, readWildcard } from "./wording.ts";
import { VERDICTS } from "./decision.ts";
import { inertJson } from "./visible.ts";

export const HOOK_EVENTS = ["PreToolUse", "PostToolUse", "Stop", "SessionStart", "PreCompact"] as const;
export type HookEvent = (typeof HOOK_EVENTS)[number];

/** Who owns the hook. The user's run on the host, the project's in the box. */
const HOOK_OWNERS = ["user", "project"] as const;
export type HookOwner = (typeof HOOK_OWNERS)[number];

/** `passed`: the hook ran, and changed nothing. */
const HOOK_DEEDS = ["passed", "skipped", "replaced", "added", "continued", "failed"] as const;
export type HookDeed = (typeof HOOK_DEEDS)[number];

const COMMAND = "expected a command: a text for the shell, or a list of words";
const line = z.string(COMMAND).min(1, COMMAND).max(4096, COMMAND);
const noNul = (text: string): boolean => !text.includes("\0");

/** A string is run by a shell; a list of words is started directly. */
const commandForm = z.union(
  [line.refine(noNul, COMMAND), z.array(line.refine(noNul, COMMAND)).min(1, COMMAND).max(64, COMMAND)],
  COMMAND,
);
export type ProgramCommand = z.infer<typeof commandForm>;

const TIMEOUT = "expected a duration from 1s to 10m";
/** As written; `patienceOf` converts it. */
const patienceForm = z.union([z.string(), z.number()], TIMEOUT).refine((value) => {
  const ms = parseDuration(String(value));
  return ms !== undefined && ms >= 1000 && ms <= 600_000;
}, TIMEOUT);

/** Milliseconds. */
export const patienceOf = (written: string | number | undefined, unsaid: number): number =>
  written === undefined ? unsaid : (parseDuration(String(written)) ?? unsaid);

const GLOB = "expected a tool's name, with * for any text";
const glob = z.string(GLOB).regex(/^[\w*.:-]{1,100}$/, GLOB);

/** Keys of one hook. */
export const HOOK_KEYS = ["event", "tools", "command", "name", "timeout", "required"] as const;

/** Built on first use, so that a run without hooks does not pay for it. */
const hookForm = () =>
  z
    .strictObject({
      event: z.enum(HOOK_EVENTS, `expected one of ${HOOK_EVENTS.join(", ")}`),
      /** Left out, the hook runs for every tool. */
      tools: z.union([glob, z.array(glob, GLOB).min(1, GLOB).max(64, GLOB)], GLOB).optional(),
      command: commandForm,
      name: z
        .string("expected a name")
        .regex(/^[\w .:-]{1,60}$/, "expected a name of at most 60 letters, digits, spaces, _ . : or -")
        .optional(),
      timeout: patienceForm.optional(),
      /** Only for PostToolUse: if the hook cannot run, the result is withheld. */
      required: z.boolean("expected true or false").optional(),
    })
    .refine(({ event, tools }) => tools === undefined || event.endsWith("ToolUse"), {
      error: "only PreToolUse and PostToolUse hooks can name tools",
      path: ["tools"],
    })
    .refine(({ event, required }) => required === undefined || event === "PostToolUse", {
      error:
        "only a PostToolUse hook can be required: if a PreToolUse hook is broken, the call does not run anyway",
      path: ["required"],
    });
export type HookDefinition = z.infer<ReturnType<typeof hookForm>>;

const HOOKS = "expected a list of at most 32 hooks";
/** In the order in which they run. */
export const hooksForm = z.lazy(() => z.array(hookForm(), HOOKS).max(32, HOOKS));

/** The name shown to people. */
export function hookName({ name, command }: HookDefinition): string {
  const text = name ?? [command].flat().join(" ");
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

/** Whether the hook runs for calls of this tool. Linear. */
export const isForTool = ({ tools = "*" }: HookDefinition, tool: string): boolean =>
  [tools].flat().some((each) => fitsWildcard(readWildcard(each), tool));

/** The fields of the event for a hook that ran. */
export const hookFields = () => ({
  event: z.enum(HOOK_EVENTS),
  hook: z.string().describe("Its name, or its command."),
  owner: z.enum(HOOK_OWNERS).describe("The user's runs on the host, the project's in the box."),
  did: z.enum(HOOK_DEEDS).describe("passed: it changed nothing; failed: it gave no valid answer."),
  call: z.string().exactOptional().describe("The call for which it ran."),
  tool: z.string().exactOptional(),
  args: z
    .record(z.string(), z.unknown())
    .exactOptional()
    .describe("The arguments with which it replaced the proposed ones: these are judged and run."),
  decision: z
    .enum(VERDICTS)
    .exactOptional()
    .describe("The policy's verdict on the command of a project's hook; deny: it does not run."),
  reason: z.string().exactOptional().describe("Why the call is skipped, or why the hook failed."),
});

interface HookFields {
  readonly event: HookEvent;
  readonly hook: string;
  readonly owner: HookOwner;
  readonly did: HookDeed;
  readonly tool?: string;
  readonly reason?: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

const MAX_ARGS = 300;

const CHANGED: Readonly<Record<HookEvent, string>> = {
  PreToolUse: "the arguments of",
  PostToolUse: "the result of",
  Stop: "the answer",
  SessionStart: "",
  PreCompact: "",
};

/** For a person; empty when the call's own events say it, or when nothing was done. */
export function hookWords({ event, hook, owner, did, tool = "", reason = "", args }: HookFields): string {
  const who = `the ${owner === "user" ? "user's" : "project's"} hook ${hook}`;
  switch (did) {
    case "passed":
    case "skipped":
      return "";
    case "replaced":
      return `${who} replaced ${CHANGED[event]} ${tool}${args === undefined ? "" : `: ${inertJson(args).slice(0, MAX_ARGS)}`}`.trimEnd();
    case "added":
      return `${who} added to the conversation (${event})`;
    case "continued":
      return `${who} makes the model continue`;
    case "failed":
      return `${who} is broken (${event}): ${reason}`;
  }
}

/** Tools that a user or a trusted project adds: a command of the box, and the schema of its input. */

const NAME = /^[\w-]{1,64}$/;
const NAMED = "expected tool names of at most 64 letters, digits, _ and -";
const SCHEMA = "expected a JSON Schema of an object";
const MAX_SCHEMA = 16 * 1024;
const MAX_DEPTH = 16;
const DESCRIPTION = "expected a description of at most 2,000 characters";

/** Rejects schemas that take long to read, or to send to a model with every request. */
const schemaForm = z
  .record(z.string(), z.unknown(), SCHEMA)
  .refine((schema) => (schema["type"] ?? "object") === "object", SCHEMA)
  .refine((schema) => depthOf(schema) <= MAX_DEPTH, `${SCHEMA}, at most ${MAX_DEPTH} levels deep`)
  .refine((schema) => JSON.stringify(schema).length <= MAX_SCHEMA, `${SCHEMA}, of at most 16 KiB`);

function depthOf(value: unknown, depth = 0): number {
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return depth;
  return Math.max(depth, ...Object.values(value).map((inner) => depthOf(inner, depth + 1)));
}

const toolForm = z.strictObject({
  description: z.string(DESCRIPTION).min(1, DESCRIPTION).max(2000, DESCRIPTION),
  command: commandForm,
  /** Left out, the tool takes any object. */
  schema: schemaForm.optional(),
  timeout: patienceForm.optional(),
  /** The tool gets the stored values, and may store others. */
  state: z.boolean("expected true or false").optional(),
});

/** As written in a project. */
export const projectToolsForm = tableOf(toolForm);

/** As written by the user. Only the user can state that a program changes nothing. */
const ownToolForm = toolForm.extend({ reads: z.boolean("expected true or false").optional() });
export const toolsForm = tableOf(ownToolForm);

/** Keys of one tool. */
export const TOOL_KEYS = Object.keys(ownToolForm.shape);

export type CustomToolDefinition = z.infer<typeof toolsForm>[string];

function tableOf<T extends z.ZodType>(each: T) {
  return z
    .record(z.string().regex(NAME, NAMED), each, NAMED)
    .refine((table) => Object.keys(table).length <= 64, "expected at most 64 tools");
}
