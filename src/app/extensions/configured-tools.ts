import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { type CustomToolGiven, type HookOwner, patienceOf } from "../../core/added-programs.ts";
import { reasonOf } from "../../core/errors.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS } from "../../core/tool.ts";
import { keptValues, projectTools } from "../../extensions/program-files.ts";
import type { TrustedFile } from "../../extensions/trust.ts";
import { shellText } from "../../policy/shell/shell-syntax.ts";
import { customTool } from "../../tools/custom-tool.ts";
import { BUILT_IN } from "../../tools/index.ts";
import type { ExtensionParts } from "./open-extensions.ts";

interface Added {
  readonly name: string;
  readonly given: CustomToolGiven;
  readonly owner: HookOwner;
  readonly folder: string;
}

/** The tools that the user and a trusted project added. A tool that cannot be used is left out with a warning. */
export function openTools(parts: ExtensionParts, project: TrustedFile): Promise<Extensions> {
  const { settings, workspace, warn } = parts;
  const own = Object.entries(settings.tools).map(([name, given]): Added => ({
    name,
    given,
    owner: "user",
    folder: workspace,
  }));
  const names = new Set<string>();
  const tools: AnyTool[] = [];
  for (const added of [...own, ...theirTools(parts, project)]) {
    const wrong = names.has(added.name) ? "another tool has that name" : notFree(added.name);
    const made = wrong ?? toolFor(added, parts);
    if (typeof made === "string") warn(`the tool ${added.name} is left out: ${made}`);
    else tools.push(made);
    names.add(added.name);
  }
  return Promise.resolve({ ...NO_EXTENSIONS, tools: () => tools });
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
    return Object.entries(projectTools(project.file, project.text)).map(([name, given]) => ({
      name,
      given,
      owner: "project",
      folder,
    }));
  } catch (thrown) {
    warn(`the project's tools are left out: ${reasonOf(thrown)}`);
    return [];
  }
}

function toolFor(
  { name, given, owner, folder }: Added,
  { host, settings, workspace }: ExtensionParts,
): AnyTool | string {
  const issuesOf = checkOf(given.schema ?? {});
  if (typeof issuesOf === "string") return issuesOf;
  const { command } = given;
  return customTool({
    name,
    given,
    commandText: typeof command === "string" ? command : shellText(command),
    folder,
    timeoutMs: patienceOf(given.timeout, settings.timeout),
    issuesOf,
    ...(given.state === true
      ? { values: keptValues({ stateDir: host.places.state, workspace, owner }) }
      : {}),
  });
}

const MAX_ISSUES = 8;

/** Checks arguments against the schema; a text says why the schema is invalid. */
function checkOf(
  schema: NonNullable<CustomToolGiven["schema"]>,
): ((args: unknown) => readonly string[]) | string {
  try {
    const ajv = new Ajv2020({ allErrors: false, strict: false, validateFormats: false });
    const validate = ajv.compile({ type: "object", ...withoutPatterns(schema) });
    return (args) => (validate(args) ? [] : (validate.errors ?? []).slice(0, MAX_ISSUES).map(issueText));
  } catch (thrown) {
    return `its schema is not a valid JSON Schema: ${reasonOf(thrown)}`;
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
    const kept = Object.entries(value).filter(([key]) => !isSchema || !PATTERNS.has(key));
    return Object.fromEntries(
      kept.map(([key, inner]) => [
        key,
        isSchema && DATA.has(key) ? inner : walk(inner, !(isSchema && NAMED.has(key))),
      ]),
    );
  };
  return walk(schema, true) as Readonly<Record<string, unknown>>;
}

const PATTERNS: ReadonlySet<string> = new Set(["pattern", "patternProperties"]);
/** Keywords whose values are data to compare with, not schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);
/** Keywords that hold schemas by name; those names are not keywords. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);

const issueText = ({ instancePath, message = "does not fit", params }: ErrorObject): string => {
  const at = instancePath.slice(1).replaceAll("/", ".");
  const more: unknown = Reflect.get(params, "additionalProperty");
  return `${at === "" ? "" : `${at}: `}${message}${typeof more === "string" ? `: ${JSON.stringify(more)}` : ""}`;
};
