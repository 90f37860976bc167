import { existsSync } from "node:fs";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS, NO_FACTS } from "../../core/tool.ts";
import {
  type CustomToolDefinition,
  type HookDefinition,
  type HookOwner,
  patienceOf,
} from "../../core/added-programs.ts";
import { isInside } from "../../core/file-names.ts";
import { projectOf } from "../../extensions/brought.ts";
import { type HookVerdict, type HostPlace, runInBox, runOnHost } from "../../extensions/hook-programs.ts";
import { type Hook, hooksOf } from "../../extensions/hook-chain.ts";
import { keptValues, projectHooks, projectTools } from "../../extensions/program-files.ts";
import type { TrustedFile } from "../../extensions/trust.ts";
import { shellText } from "../../policy/shell/shell-syntax.ts";
import { lazyJudge } from "./policy-context.ts";
import type { ExtensionParts } from "./open-extensions.ts";
import { customTool } from "../../tools/custom-tool.ts";
import { BUILT_IN } from "../../tools/index.ts";
import { compiledSchema, schemaIssues } from "../json-schema.ts";

type HookParts = Pick<ExtensionParts, "host" | "settings" | "workspace" | "session" | "box">;

/** The hooks of a run: the user's on the host; those of a trusted project in the box, and only if the policy allows. */
export async function openHooks(parts: HookParts, project: TrustedFile): Promise<Extensions> {
  const { settings, workspace, session } = parts;
  const place = await hostPlace(parts);
  const own = settings.hooks.map((definition) => userHook(definition, parts, place));
  const theirs = project.state === "trusted" ? theirHooks(parts, project) : [];
  const hooks = hooksOf([...own, ...theirs], { session, workspace, mode: settings.mode });
  return { ...NO_EXTENSIONS, hooks };
}

/**
 * The user's hooks start in the folder of their settings, so that no relative name can find a file of the workspace; if
 * the settings are inside the workspace, they start at the root.
 */
async function hostPlace({ host, workspace }: HookParts): Promise<HostPlace> {
  const { env, places } = host;
  const apart = projectOf(workspace, places.home)?.top ?? workspace;
  const folder = path.dirname(places.configFiles[0]);
  const inside = isInside(apart, folder);
  return { env, home: places.home, apart, cwd: existsSync(folder) && !inside ? folder : "/" };
}

function userHook(definition: HookDefinition, { host, workspace }: HookParts, place: HostPlace): Hook {
  const values = keptValues({ stateDir: host.places.state, workspace, owner: "user" });
  return {
    owner: "user",
    definition,
    values,
    run: (run, signal) => runOnHost(definition.command, place, run, signal),
  };
}

function theirHooks(
  { host, settings, workspace, box }: HookParts,
  { file, text, top }: Extract<TrustedFile, { readonly state: "trusted" }>,
): readonly Hook[] {
  const values = keptValues({ stateDir: host.places.state, workspace, owner: "project" });
  const judge = lazyJudge(host, settings, workspace);
  // If the workspace is a copy, the box has nothing above it.
  const folder = settings.isolation === "copy" ? workspace : top;
  return readHooks(file, text).map((definition) => ({
    owner: "project",
    definition,
    values,
    run: async (run, signal) => {
      const { command } = definition;
      const words = typeof command === "string" ? command : shellText(command);
      const { decision, rules } = (await judge()).judge({ ...NO_FACTS, commands: [words], folder }, "hook");
      const verdict: HookVerdict = { decision, rules };
      // A person has seen the command and trusts it: that answers an ask, but not a deny.
      const [rule] = rules;
      if (decision === "deny")
        return {
          kind: "broken",
          why: `the policy denies its command: ${rule?.reason ?? ""} (rule ${rule?.id ?? "none"})`,
          verdict,
        };
      return { ...(await runInBox(command, { box, folder }, run, signal)), verdict };
    },
  }));
}

/** A trusted file must be readable: otherwise the run would go on without its guards. */
function readHooks(file: string, text: string): readonly HookDefinition[] {
  try {
    return projectHooks(file, text);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, reasonOf(thrown), "fix it, then: harness trust");
  }
}

interface Added {
  readonly name: string;
  readonly definition: CustomToolDefinition;
  readonly owner: HookOwner;
  readonly folder: string;
}

/** The tools that the user and a trusted project added. A tool that cannot be used is left out with a warning. */
export async function openTools(parts: ExtensionParts, project: TrustedFile): Promise<Extensions> {
  const { settings, workspace, warn } = parts;
  const own = Object.entries(settings.tools).map(([name, definition]): Added => ({
    name,
    definition,
    owner: "user",
    folder: workspace,
  }));
  const names = new Set<string>();
  const tools: AnyTool[] = [];
  for (const added of [...own, ...theirTools(parts, project)]) {
    const wrong = names.has(added.name) ? "another tool has that name" : notFree(added.name);
    const made = wrong ?? (await toolFor(added, parts));
    if (typeof made === "string") warn(`the tool ${added.name} is left out: ${made}`);
    else tools.push(made);
    names.add(added.name);
  }
  return { ...NO_EXTENSIONS, tools: () => tools };
}

/** A tool may not take the name of another origin: a rule of the user's for one origin must not apply to the other. */
function notFree(name: string): string | undefined {
  if (BUILT_IN.has(name)) return "a built-in tool has that name";
  return name.includes("__") || name.startsWith("mcp_")
    ? "names with __ or mcp_ are reserved for the tools of MCP servers"
    : undefined;
}

function theirTools({ settings, workspace, warn }: ExtensionParts, project: TrustedFile): readonly Added[] {
  if (project.state !== "trusted") return [];
  try {
    const folder = settings.isolation === "copy" ? workspace : project.top;
    return Object.entries(projectTools(project.file, project.text)).map(([name, definition]) => ({
      name,
      definition,
      owner: "project",
      folder,
    }));
  } catch (thrown) {
    warn(`the project's tools are left out: ${reasonOf(thrown)}`);
    return [];
  }
}

async function toolFor(
  { name, definition, owner, folder }: Added,
  { host, settings, workspace }: ExtensionParts,
): Promise<AnyTool | string> {
  const issuesOf = await checkOf(definition.schema ?? {});
  if (typeof issuesOf === "string") return issuesOf;
  const { command } = definition;
  return customTool({
    name,
    definition,
    commandText: typeof command === "string" ? command : shellText(command),
    folder,
    timeoutMs: patienceOf(definition.timeout, settings.timeout),
    issuesOf,
    ...(definition.state === true
      ? { values: keptValues({ stateDir: host.places.state, workspace, owner }) }
      : {}),
  });
}

/** Checks arguments against the schema; a text says why the schema cannot be used. */
async function checkOf(
  schema: NonNullable<CustomToolDefinition["schema"]>,
): Promise<((args: unknown) => readonly string[]) | string> {
  try {
    const errorsOf = await compiledSchema(
      { type: "object", ...withoutPatterns(schema) },
      { allErrors: false },
    );
    return (args) => schemaIssues(errorsOf(args));
  } catch (thrown) {
    return `its schema ${reasonOf(thrown)}`;
  }
}

/**
 * A regular expression from a third party, run on a model's text, can take for ever, so patterns are not checked. The
 * model still sees them, and the tool itself decides whether the text fits.
 */
function withoutPatterns(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const walk = (value: unknown, isSchema: boolean): unknown => {
    if (Array.isArray(value)) return value.map((each) => walk(each, isSchema));
    if (typeof value !== "object" || value === null) return value;
    const loose = isSchema ? withoutExclusions(value as Readonly<Record<string, unknown>>) : value;
    const kept = Object.entries(loose).filter(([key]) => !isSchema || !PATTERNS.has(key));
    return Object.fromEntries(
      kept.map(([key, inner]) => [
        key,
        isSchema && DATA.has(key) ? inner : walk(inner, !(isSchema && NAMED.has(key))),
      ]),
    );
  };
  return walk(schema, true) as Readonly<Record<string, unknown>>;
}

/**
 * Where patterns and formats are not checked, "not" and "if" would hold too often, "oneOf" would find several, and names
 * that a pattern allows would count as unknown: the check must never refuse what the whole schema accepts.
 */
function withoutExclusions(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { not, if: condition, then, else: otherwise, oneOf, additionalProperties, ...others } = schema;
  const all = Array.isArray(schema["allOf"]) ? (schema["allOf"] as readonly unknown[]) : [];
  return {
    ...others,
    ...(not === undefined || isUnchecked(not) ? {} : { not }),
    ...(condition === undefined || isUnchecked(condition)
      ? {}
      : {
          if: condition,
          ...(then === undefined ? {} : { then }),
          ...(otherwise === undefined ? {} : { else: otherwise }),
        }),
    ...(oneOf === undefined ? {} : isUnchecked(oneOf) ? { allOf: [...all, { anyOf: oneOf }] } : { oneOf }),
    ...(additionalProperties === undefined || schema["patternProperties"] !== undefined
      ? {}
      : { additionalProperties }),
  };
}

/** Also if it refers to another part, which may have a pattern. */
const isUnchecked = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).some(([key, inner]) => UNCHECKED.has(key) || isUnchecked(inner));

const UNCHECKED: ReadonlySet<string> = new Set([
  "pattern",
  "patternProperties",
  "format",
  "$ref",
  "$dynamicRef",
]);
const PATTERNS: ReadonlySet<string> = new Set(["pattern", "patternProperties"]);
/** Keywords whose values are data to compare with, not schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);
/** Keywords that hold schemas by name; those names are not keywords. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
