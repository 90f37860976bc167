/**
 * Which MCP servers a run has: the user's own, and those of its project that count; and what the settings of a server
 * mean. Reading the plans starts nothing.
 */
import path from "node:path";
import { type Config, parseConfigDocument } from "../../config/load-config.ts";
import { type McpServers, type McpServerSettings, projectServers } from "../../config/mcp-settings.ts";
import type { Env } from "../../config/places.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Extensions } from "../../core/tool.ts";
import { inertJson, visibleLine } from "../../core/visible.ts";
import type { Host } from "../host.ts";
import { trustedFile } from "./project-trust.ts";
import type { ExtensionParts } from "./open-extensions.ts";

export interface ServerPlan {
  readonly name: string;
  /** The file, variable or flag that defines the server. */
  readonly origin: string;
  /** Defined by the user; otherwise by a trusted project. */
  readonly isOwn: boolean;
  /** As written; variables are filled in when the server starts. */
  readonly settings: McpServerSettings;
}

export interface Plans {
  readonly servers: readonly ServerPlan[];
  /** Servers that are defined but do not count. */
  readonly left: readonly { readonly name: string; readonly origin: string; readonly why: string }[];
}

export interface PlanParts {
  readonly host: Host;
  readonly settings: Pick<Settings, "mcp">;
  readonly origins: Config["origins"];
  readonly workspace: string;
}

const NONE: Plans = { servers: [], left: [] };
const KINDS = ["mcp", "shared-mcp"] as const;

/** The user's own servers come first; of several with one name only the first counts. */
export async function serverPlans(parts: PlanParts): Promise<Plans> {
  const all = [settingsPlans(parts), ...(await Promise.all(KINDS.map((kind) => projectPlans(parts, kind))))];
  const [own = NONE, ...others] = all;
  const left = all.flatMap((each) => each.left);
  const servers = new Map(own.servers.map((plan) => [plan.name, plan]));
  for (const plan of others.flatMap((each) => each.servers)) {
    const { name, origin } = plan;
    const first = servers.get(name);
    if (first === undefined) servers.set(name, plan);
    else
      left.push({ name, origin, why: `${first.origin} has a server with that name, which is used instead` });
  }
  return { servers: [...servers.values()], left };
}

/** Settings of a project, even of a trusted one, are not the user's own words. */
function settingsPlans({ host, settings: { mcp }, origins }: PlanParts): Plans {
  const origin = origins["mcp"] ?? "default";
  const isOwn = !path.isAbsolute(origin) || host.places.configFiles.includes(origin);
  return plansFrom(mcp, origin, isOwn);
}

async function projectPlans({ host, workspace }: PlanParts, kind: (typeof KINDS)[number]): Promise<Plans> {
  const found = await trustedFile(host, workspace, kind);
  if (found.state === "absent") return NONE;
  const { file } = found;
  if (found.state === "untrusted")
    return { servers: [], left: [{ name: "", origin: file, why: `${found.why}: harness trust` }] };
  try {
    const { servers, faults } = projectServers(parseConfigDocument(file, found.text).value);
    const plans = plansFrom(servers, file, false);
    return { ...plans, left: [...plans.left, ...faults.map((why) => ({ name: "", origin: file, why }))] };
  } catch (thrown) {
    return { servers: [], left: [{ name: "", origin: file, why: reasonOf(thrown) }] };
  }
}

function plansFrom(servers: McpServers, origin: string, isOwn: boolean): Plans {
  const rows = Object.entries(servers).map(([name, settings]) => ({
    plan: { name, origin, isOwn, settings },
    why: whyNot(settings, isOwn),
  }));
  return {
    servers: rows.flatMap(({ plan, why }) => (why === undefined ? [plan] : [])),
    left: rows.flatMap(({ plan, why }) => (why === undefined ? [] : [{ name: plan.name, origin, why }])),
  };
}

/** The MCP servers of a run; without any, no MCP code is loaded. */
export async function openMcp(parts: ExtensionParts): Promise<Extensions | undefined> {
  const { servers, left } = await serverPlans(parts);
  for (const { name, origin, why } of left)
    if (name !== "" && why !== DISABLED)
      notice(parts, `the MCP server ${name} (${origin}) is left out: ${why}`);
  if (servers.length === 0) return undefined;
  const { McpSession } = await import("./mcp-session.ts");
  return new McpSession(parts, servers);
}

const notice = ({ emit }: ExtensionParts, text: string): void =>
  emit({ type: "notice", text: visibleLine(text) });

const DISABLED = "it is not enabled";
const NO_HOST = "a project's server runs in the box; sandbox = false works only in your own settings";

/** Why a configured server does not count; undefined if it does. */
export function whyNot(settings: McpServerSettings, isOwn: boolean): string | undefined {
  if (!settings.enabled) return DISABLED;
  return !isOwn && "sandbox" in settings && !settings.sandbox ? NO_HOST : undefined;
}

/** The settings with `${VAR}` and `${VAR:-default}` filled in; a text if a variable is missing. */
export function filledIn(settings: McpServerSettings, env: Env): McpServerSettings | string {
  const missing = new Set<string>();
  const fill = (text: string): string => fillVariables(text, env, missing);
  const values = (record: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, fill(value)]));
  const whole: McpServerSettings =
    "url" in settings
      ? { ...settings, url: fill(settings.url), headers: values(settings.headers) }
      : { ...settings, command: settings.command.map(fill), env: values(settings.env) };
  if (missing.size > 0) {
    const are = missing.size === 1 ? "variable is" : "variables are";
    return `${are} not set here: ${[...missing].join(", ")}; set a value, or give a default with \${NAME:-…}`;
  }
  if ("url" in whole) return wrongUrl(whole.url) ?? whole;
  return whole;
}

const VARIABLE = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g;

const fillVariables = (text: string, env: Env, missing: Set<string>): string =>
  text.replaceAll(VARIABLE, (_, name: string, otherwise: string | undefined) => {
    const value = env[name];
    if (value !== undefined && value !== "") return value;
    if (otherwise !== undefined) return otherwise;
    if (value === undefined) missing.add(name);
    return "";
  });

/** Programs that download what they are to start, and the preset that they need for it. */
const LOADERS: Readonly<Record<string, string>> = {
  npx: "npm",
  npm: "npm",
  pnpm: "npm",
  pnpx: "npm",
  yarn: "npm",
  bunx: "npm",
  uvx: "pip",
  uv: "pip",
  pipx: "pip",
  go: "go",
  cargo: "cargo",
};
const LONGER = 'a longer "init_timeout" gives it more time';

/** Why a server was not ready in time, judged by how it is started, and what would help. */
export function whySlow(settings: McpServerSettings, granted: readonly string[]): string {
  if ("url" in settings) return `its address did not answer in time; ${LONGER}`;
  if (!settings.sandbox) return LONGER;
  const preset = LOADERS[path.basename(settings.command[0] ?? "")];
  if (preset !== undefined && !granted.some((each) => each.split("=", 1)[0] === preset))
    return `it downloads itself at its start, and the box has no access to ${preset}: put it into an environment (harness env build), or use --allow-domain ${preset} with a longer "init_timeout"`;
  if (granted.length === 0)
    return `the box has no network; if it needs one: --allow-domain HOST, or harness env build for what it downloads; otherwise ${LONGER}`;
  return `if it needs a host that is not granted: --allow-domain HOST; otherwise ${LONGER}`;
}

/** Names of the variables that a server's settings read from the user's environment. */
function variablesIn(settings: McpServerSettings): readonly string[] {
  const texts =
    "url" in settings
      ? [settings.url, ...Object.values(settings.headers)]
      : [...settings.command, ...Object.values(settings.env)];
  return [...new Set(texts.flatMap((text) => [...text.matchAll(VARIABLE)].map(([, name = ""]) => name)))];
}

/** Describes what a project's server would do. */
export function serverDoes(
  name: string,
  settings: McpServerSettings,
): { readonly text: string; readonly loosens: boolean } {
  const why = whyNot(settings, false);
  if (why !== undefined) return { text: `the MCP server ${name} is ignored: ${why}`, loosens: false };
  const variables = variablesIn(settings);
  const reads = variables.length === 0 ? "" : `, with your ${variables.join(", ")}`;
  if ("url" in settings) {
    const sent = Object.keys(settings.headers);
    const headers = sent.length === 0 ? "" : `, with the headers ${sent.join(", ")}`;
    const text = `asks the MCP server ${name} at ${settings.url}, if its host is granted${headers}${reads}`;
    return { text, loosens: true };
  }
  const { command, env, cwd } = settings;
  const names = Object.keys(env);
  const set = names.length === 0 ? "" : `, with the variables ${names.join(", ")}`;
  const where = cwd === undefined ? "" : ` in ${cwd}`;
  const text = `starts in every box${where}, as the MCP server ${name}: ${inertJson(command)}${set}${reads}`;
  return { text, loosens: true };
}

function wrongUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return "its url is not an http or https address";
  return url.username === "" && url.password === "" ? undefined : "its url has a password in it: use headers";
}
