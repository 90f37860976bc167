import { existsSync } from "node:fs";
import path from "node:path";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { Emit } from "../../core/events.ts";
import { type Extensions, NO_EXTENSIONS } from "../../core/extensions.ts";
import type { Box } from "../../core/ports.ts";
import type { AnyTool } from "../../core/tool.ts";
import { rowOf } from "../../extensions/brought.ts";
import type { HarnessRequests } from "../harness-requests.ts";
import type { Host } from "../host.ts";
import { openWebTools } from "./web-tools.ts";
import { trustedFile } from "../project/project-trust.ts";

/** What the extensions of one run or chat are opened with. */
export interface ExtensionParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly origins: Config["origins"];
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly session: string;
  /** Of the run, or of the request of a chat that is worked on; it is started for whoever asks. */
  readonly box: () => Promise<Box>;
  /** What the harness asks for itself: the grants, the gate and the audit are the box's. */
  readonly requests: Pick<HarnessRequests, "send" | "serviceAt">;
  readonly emit: Emit;
  readonly warn: (text: string) => void;
  /** Fires when the run is cancelled. */
  readonly signal: AbortSignal;
}

/** One kind of extension; what is not configured gives undefined without loading anything. */
type Opener = (parts: ExtensionParts) => Promise<Extensions | undefined>;

const OPENERS: readonly Opener[] = [mcp, skills, configuredHooks, configuredTools, openWebTools];

async function mcp(parts: ExtensionParts): Promise<Extensions | undefined> {
  const { openMcp } = await import("./mcp-plans.ts");
  return openMcp(parts);
}

async function skills(parts: ExtensionParts): Promise<Extensions | undefined> {
  if (!mayHaveSkills(parts.host, parts.workspace)) return undefined;
  const { openSkills } = await import("./open-skills.ts");
  return openSkills(parts);
}

/** Nothing is loaded where no folder has any: names alone are looked at, up to the top. */
function mayHaveSkills({ places }: Host, workspace: string): boolean {
  const tops = [places.home, ...foldersUp(workspace)];
  const folders = tops.flatMap((top) => rowOf("skills").files.map((folder) => path.join(top, folder)));
  return [path.join(path.dirname(places.configFiles[0]), "skills"), ...folders].some((folder) =>
    existsSync(folder),
  );
}

/** Names of the skills that a session which begins now would tell its model of. */
export async function offeredSkills(host: Host, workspace: string): Promise<readonly string[]> {
  if (!mayHaveSkills(host, workspace)) return [];
  const { skillsOf } = await import("./open-skills.ts");
  const { all } = await skillsOf(host, workspace);
  return all.filter(({ offered }) => offered).map(({ name }) => name);
}

const foldersUp = (folder: string): readonly string[] =>
  path.dirname(folder) === folder ? [folder] : [folder, ...foldersUp(path.dirname(folder))];

/** Also where nothing else that users added is offered: they watch over every call. */
export async function configuredHooks(
  parts: Pick<ExtensionParts, "host" | "settings" | "workspace" | "session" | "box">,
): Promise<Extensions | undefined> {
  const project = await trustedFile(parts.host, parts.workspace, "hooks");
  if (parts.settings.hooks.length === 0 && project.state !== "trusted") return undefined;
  const { openHooks } = await import("./configured-hooks.ts");
  return openHooks(parts, project);
}

async function configuredTools(parts: ExtensionParts): Promise<Extensions | undefined> {
  const project = await trustedFile(parts.host, parts.workspace, "tools");
  if (Object.keys(parts.settings.tools).length === 0 && project.state !== "trusted") return undefined;
  const { openTools } = await import("./configured-tools.ts");
  return openTools(parts, project);
}

/** All that users added, as one. What cannot be opened is told, and the run goes on without it. */
export async function openExtensions(parts: ExtensionParts): Promise<Extensions> {
  const opened = (await Promise.all(OPENERS.map((open) => open(parts)))).filter((each) => each !== undefined);
  return opened.length === 0 ? NO_EXTENSIONS : together(opened);
}

export function together(all: readonly Extensions[]): Extensions {
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
