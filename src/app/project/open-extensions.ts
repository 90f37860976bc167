import { existsSync } from "node:fs";
import path from "node:path";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { Emit } from "../../core/events.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS } from "../../core/tool.ts";
import type { Box } from "../../core/ports.ts";
import { rowOf } from "../../extensions/brought.ts";
import type { HarnessRequests } from "../run/session-grants.ts";
import { type Host, workerProgram } from "../host.ts";
import { trustedFile } from "./project-trust.ts";
import type { JudgeText, KnownValue } from "../../extensions/web/web-text.ts";

/** What the extensions of one run or chat are opened with. */
export interface ExtensionParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly origins: Config["origins"];
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly session: string;
  /** Gives the box of the run, or of the chat request being worked on, starting it if necessary. */
  readonly box: () => Promise<Box>;
  /** Requests of the harness itself: they go through the same grants, gate and audit as the box's. */
  readonly requests: Pick<HarnessRequests, "send" | "serviceAt">;
  readonly emit: Emit;
  readonly warn: (text: string) => void;
  /** Fires when the run is cancelled. */
  readonly signal: AbortSignal;
}

/** Opens one kind of extension; returns undefined without loading anything if none is configured. */
type Opener = (parts: ExtensionParts) => Promise<Extensions | undefined>;

const OPENERS: readonly Opener[] = [mcp, skills, configuredHooks, configuredTools, openWebTools];

async function mcp(parts: ExtensionParts): Promise<Extensions | undefined> {
  const { openMcp } = await import("./mcp-plans.ts");
  return openMcp(parts);
}

async function skills(parts: ExtensionParts): Promise<Extensions | undefined> {
  if (!mayHaveSkills(parts.host, parts.workspace)) return undefined;
  const { openSkills } = await import("./skills-and-commands.ts");
  return openSkills(parts);
}

/** Nothing is loaded if no folder up to the top has skills: only names are looked at. */
function mayHaveSkills({ places }: Host, workspace: string): boolean {
  const tops = [places.home, ...foldersUp(workspace)];
  const folders = tops.flatMap((top) => rowOf("skills").files.map((folder) => path.join(top, folder)));
  return [path.join(path.dirname(places.configFiles[0]), "skills"), ...folders].some((folder) =>
    existsSync(folder),
  );
}

/** Names of the skills that a session starting now would offer to its model. */
export async function offeredSkills(host: Host, workspace: string): Promise<readonly string[]> {
  if (!mayHaveSkills(host, workspace)) return [];
  const { skillsOf } = await import("./skills-and-commands.ts");
  const { all } = await skillsOf(host, workspace);
  return all.filter(({ offered }) => offered).map(({ name }) => name);
}

const foldersUp = (folder: string): readonly string[] =>
  path.dirname(folder) === folder ? [folder] : [folder, ...foldersUp(path.dirname(folder))];

/** Hooks watch over every call, so they are opened even if no other extension is. */
export async function configuredHooks(
  parts: Pick<ExtensionParts, "host" | "settings" | "workspace" | "session" | "box">,
): Promise<Extensions | undefined> {
  const project = await trustedFile(parts.host, parts.workspace, "hooks");
  if (parts.settings.hooks.length === 0 && project.state !== "trusted") return undefined;
  const { openHooks } = await import("./hooks-and-tools.ts");
  return openHooks(parts, project);
}

async function configuredTools(parts: ExtensionParts): Promise<Extensions | undefined> {
  const project = await trustedFile(parts.host, parts.workspace, "tools");
  if (Object.keys(parts.settings.tools).length === 0 && project.state !== "trusted") return undefined;
  const { openTools } = await import("./hooks-and-tools.ts");
  return openTools(parts, project);
}

/** All extensions as one. A part that cannot be opened is reported, and the run goes on without it. */
export async function openExtensions(parts: ExtensionParts): Promise<Extensions> {
  const opened = (await Promise.all(OPENERS.map((open) => open(parts)))).filter((each) => each !== undefined);
  return opened.length === 0 ? NO_EXTENSIONS : combineExtensions(opened);
}

export function combineExtensions(all: readonly Extensions[]): Extensions {
  const last: { lists: readonly (readonly AnyTool[])[]; tools: readonly AnyTool[] } = {
    lists: [],
    tools: [],
  };
  const hooks = all.find((each) => each.hooks !== undefined)?.hooks;
  return {
    ...(hooks === undefined ? {} : { hooks }),
    tools: () => {
      const lists = all.map((each) => each.tools());
      const same = lists.length === last.lists.length && lists.every((list, at) => list === last.lists[at]);
      if (!same) Object.assign(last, { lists, tools: lists.flat() });
      return last.tools;
    },
    prompt: all
      .map(({ prompt }) => prompt)
      .filter((text) => text !== "")
      .join("\n\n"),
    ready: async () => {
      await Promise.all(all.map(async (each) => each.ready?.()));
    },
    rest: async () => {
      await Promise.all(all.map(async (each) => each.rest?.()));
    },
    [Symbol.asyncDispose]: async () => {
      await using stack = new AsyncDisposableStack();
      for (const each of all) stack.use(each);
    },
  };
}

interface WebParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly requests: Pick<HarnessRequests, "send" | "serviceAt">;
  readonly warn: (text: string) => void;
}

/** The web tools that the user's settings turn on; undefined, with nothing loaded, if there are none. */
export async function openWebTools(parts: WebParts): Promise<Extensions | undefined> {
  const { host, settings, requests } = parts;
  const { fetch, search } = settings.web;
  if (!fetch && search === null) return undefined;
  const { secretJudge } = await import("../../extensions/web/web-text.ts");
  const holdsSecret = secretJudge(knownValues(host, settings));
  const tools: AnyTool[] = search === null ? [] : await searchTools(parts, search, holdsSecret);
  if (fetch) {
    const [{ webFetchTool }, { htmlReader }] = await Promise.all([
      import("../../extensions/web/web-fetch.ts"),
      import("../../extensions/web/web-text.ts"),
    ]);
    const readHtml = htmlReader(workerProgram("page-worker", "src/extensions/web/page-worker.ts"));
    tools.push(webFetchTool({ requests, readHtml, holdsSecret, now: () => new Date() }));
  }
  return { ...NO_EXTENSIONS, tools: () => tools };
}

/** A service without its key is not asked, and the run goes on. */
async function searchTools(
  { host: { env }, requests, warn }: WebParts,
  { provider, url }: NonNullable<Settings["web"]["search"]>,
  holdsSecret: JudgeText,
): Promise<AnyTool[]> {
  const { SERVICES, webSearchTool } = await import("../../extensions/web/web-search.ts");
  const { url: usual = "", key: variable } = SERVICES[provider];
  const key = variable === undefined ? "" : (env[variable]?.trim() ?? "");
  if (variable !== undefined && !/^[\u0021-\u007e]+$/.test(key)) {
    const why = key === "" ? "is not set" : "contains characters that a request cannot carry";
    warn(`web_search is left out: ${provider} needs a key, and ${variable} ${why}`);
    return [];
  }
  const base = url ?? usual;
  const service = requests.serviceAt(new URL(base));
  return [webSearchTool({ requests: service, provider, base, key, holdsSecret })];
}

/** Keys of services and of models; the secrets of the settings are added to them. */
const KEYS = ["TAVILY_API_KEY", "EXA_API_KEY", "BRAVE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
const MIN_SECRET_LENGTH = 8;

const knownValues = (
  { env }: Pick<Host, "env">,
  { secrets }: Pick<Settings, "secrets">,
): readonly KnownValue[] =>
  [...new Set([...KEYS, ...Object.keys(secrets)])].flatMap((name) => {
    const value = env[name] ?? "";
    return value.length < MIN_SECRET_LENGTH ? [] : [{ name, value }];
  });
