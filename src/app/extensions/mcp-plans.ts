import path from "node:path";
import { type Config, parseConfigDocument } from "../../config/load-config.ts";
import { type McpServers, type McpServerSettings, projectServers } from "../../config/mcp-settings.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Extensions } from "../../core/tool.ts";
import { visibleLine } from "../../core/visible.ts";
import type { Host } from "../host.ts";
import { trustedFile } from "../project/project-trust.ts";
import type { ExtensionParts } from "./open-extensions.ts";
import { DISABLED, whyNot } from "./mcp-words.ts";

/**
 * Which MCP servers a run has: the user's own, and those of its project that count. Reading the plans starts nothing.
 */

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
