import path from "node:path";
import type { Recipe, TakenItem } from "./recipe.ts";

/** What the readers of ecosystems share: the files of a folder, and what they say. */

/** What one project of one ecosystem needs; folders and steps are relative to the project's own folder. */
export interface Needs {
  /** The file that these needs come from. */
  readonly from: string;
  readonly toolchain?: keyof Recipe["toolchains"];
  readonly managers?: Recipe["managers"];
  readonly packages?: readonly string[];
  readonly registries?: readonly string[];
  readonly steps?: readonly string[];
  /** Compiles ahead of the tests; a project that does not compile yet needs its environment all the same. */
  readonly compile?: string;
  readonly folders?: readonly string[];
  readonly env?: Recipe["env"];
  readonly notTaken?: readonly string[];
}

/** The files of one folder that say something, by name. */
export type Folder = ReadonlyMap<string, string>;

export type Reader = (folder: Folder) => Needs | undefined;

/** Marks the folder that is the workspace itself. */
export const TOP = "/";

export const textIn = (value: unknown): string => (typeof value === "string" ? value : "");

/** How to add a command, and what it needs, to what is detected. */
export const ownRecipe = (run: string, ...packages: readonly string[]): string =>
  `write a recipe, .harness/env.json: {"detected": true, ${
    packages.length === 0 ? "" : `"packages": ${JSON.stringify(packages)}, `
  }"setup": [{"run": ${JSON.stringify(run)}}]}`;

/** Hosts to which a registry sends for its files. */
const BESIDE: Readonly<Record<string, string>> = {
  ["rubygems org".replaceAll(" ", ".")]: "index rubygems org".replaceAll(" ", "."),
  ["repo packagist org".replaceAll(" ", ".")]: "api.github.com",
  "api.github.com": "codeload.github.com",
};

/**
 * For a registry without a preset: the hosts that the project's own files name, or the tool's `usual` one, for a person
 * who may grant them.
 */
export function unpreset(
  tool: string,
  texts: readonly (string | undefined)[],
  address: RegExp,
  usual = "HOST",
): string {
  const named = new Set(
    texts.flatMap((text) => [...(text ?? "").matchAll(address)].map(([, host = ""]) => host.toLowerCase())),
  );
  const hosts = new Set(
    [...named].filter((host) => /^[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?$/.test(host)).slice(0, 8),
  );
  if (hosts.size === 0) hosts.add(usual);
  // A set grows while it is walked: what was added is looked up, too.
  for (const host of hosts) if (BESIDE[host] !== undefined) hosts.add(BESIDE[host]);
  return `${tool}'s registry is in no preset: --allow-domain ${[...hosts].join(",")}`;
}

/** The hosts that such lines about a folder's files name. */
export function namedHosts(lines: readonly TakenItem[], folder: string): readonly string[] {
  const own = lines.filter(({ from }) => path.posix.dirname(from) === folder);
  const named = own.map(({ what }) => /--allow-domain ([a-z0-9.,-]+)$/.exec(what)?.[1] ?? "");
  return [...new Set(named.flatMap((hosts) => hosts.split(",")).filter((host) => host !== ""))];
}
