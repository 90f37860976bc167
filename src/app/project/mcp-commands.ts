/** The work of `harness mcp`, without its flags and output. */
import { readFile } from "node:fs/promises";
import type { Config } from "../../config/load-config.ts";
import { type McpServerSettings, withoutValues } from "../../config/mcp-settings.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import type { Box } from "../../core/ports.ts";
import { openBoxFor } from "../boxes/box-access.ts";
import { type ServerPlan, serverPlans } from "./mcp-plans.ts";
import { logFile, McpSession, type Served } from "./mcp-session.ts";
import { HarnessRequests } from "../run/session-grants.ts";
import type { Host } from "../host.ts";
import { lazyJudge } from "./policy-context.ts";

export interface McpRequest {
  readonly host: Host;
  readonly config: Config;
  readonly workspace: string;
  readonly warn: (text: string) => void;
}

export interface ListedServer {
  readonly name: string;
  /** Why the server does not count; empty if it does. */
  readonly why: string;
  readonly origin: string;
  readonly where: "box" | "host" | "http" | "";
  /** The command or address of the server, without the values of variables and headers. */
  readonly what: string;
}

export async function listServers({ host, config, workspace }: McpRequest): Promise<readonly ListedServer[]> {
  const { settings, origins } = config;
  const { servers, left } = await serverPlans({ host, settings, origins, workspace });
  return [
    ...servers.map(({ name, origin, settings: server }) => ({
      name,
      why: "",
      origin,
      where: whereOf(server),
      what: whatOf(name, server),
    })),
    ...left.map(({ name, origin, why }) => ({ name, why, origin, where: "" as const, what: "" })),
  ];
}

const whereOf = (server: McpServerSettings): "box" | "host" | "http" =>
  "url" in server ? "http" : server.sandbox ? "box" : "host";

function whatOf(name: string, server: McpServerSettings): string {
  const shown = withoutValues({ [name]: server })[name] ?? server;
  return "url" in shown ? shown.url : shown.command.join(" ");
}

/** A tool of a tried server, and the decision on a call with no person to ask. */
interface TestedTool {
  readonly name: string;
  readonly description: string;
  readonly decision: string;
  readonly contained: boolean;
  /** Left out until it is accepted. */
  readonly held: boolean;
}

export interface TestedServer {
  readonly name: string;
  readonly up: boolean;
  /** Why the server is not up. */
  readonly why: string;
  readonly tools: readonly TestedTool[];
  readonly left: readonly { readonly tool: string; readonly why: string }[];
  readonly notices: readonly string[];
}

/** Starts one server as a run would, asks for its tools, and ends it. `accept`: trust what the server says now. */
export async function tryServer(
  request: McpRequest,
  name: string,
  { accept, signal }: { readonly accept: boolean; readonly signal: AbortSignal },
): Promise<TestedServer> {
  const { host, config, workspace, warn } = request;
  const { settings } = config;
  const plan = await planOf(request, name);
  const notices: string[] = [];
  const emit = (event: { readonly type: string; readonly text?: string }): void => {
    if (event.type === "notice" && event.text !== undefined) notices.push(event.text);
  };
  await using stack = new AsyncDisposableStack();
  const opened: { box?: Promise<Box> } = {};
  const box = (): Promise<Box> => (opened.box ??= open());
  const open = async (): Promise<Box> => {
    const opening = { host, settings, workspace, runtime: null, watchChanges: false, keep: null, warn };
    return stack.use(await openBoxFor(opening, signal));
  };
  // If no box can be opened, the fault is not the server's, so this is checked first.
  if (whereOf(plan.settings) === "box") await box();
  const domains = (): readonly string[] => settings.allow_domains;
  const requests = stack.use(new HarnessRequests({ host, settings, workspace, domains, emit, warn }));
  const session = stack.use(new McpSession({ host, settings, workspace, box, requests, emit }, [plan]));
  const [served] = session.served;
  if (served === undefined) return { name, up: false, why: notices.join("; "), tools: [], left: [], notices };
  await session.ready();
  if (accept) await served.pins.keep(served.catalogue.tools);
  return await testedServer(request, served, { notices, accept });
}

async function testedServer(
  { host, config, workspace }: McpRequest,
  { server, catalogue, leftOut, facts }: Served,
  { notices, accept }: { readonly notices: readonly string[]; readonly accept: boolean },
): Promise<TestedServer> {
  const judge = await lazyJudge(host, config.settings, workspace)();
  return {
    name: server.name,
    up: server.isUp,
    why: server.isUp ? "" : server.why,
    tools: catalogue.tools.map((tool) => {
      const { decision, contained } = judge.judge(facts, tool.name);
      const { name, description } = tool;
      return { name, description, decision, contained, held: !accept && leftOut.includes(tool) };
    }),
    left: catalogue.left,
    notices,
  };
}

async function planOf({ host, config, workspace }: McpRequest, name: string): Promise<ServerPlan> {
  const { settings, origins } = config;
  const { servers, left } = await serverPlans({ host, settings, origins, workspace });
  const plan = servers.find((each) => each.name === name);
  if (plan !== undefined) return plan;
  const why = left.find((each) => each.name === name)?.why ?? "there is no server with that name";
  throw new HarnessError(EXIT.usage, `the MCP server ${name} cannot be started: ${why}`, "harness mcp list");
}

/** What a server wrote to stderr in the last run that used it; undefined if nothing is kept. */
export async function serverLog(host: Host, name: string): Promise<string | undefined> {
  try {
    return await readFile(logFile(host.places.state, name), "utf8");
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}
