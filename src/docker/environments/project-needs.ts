import type { Recipe } from "./recipe.ts";

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

/** Where people learn how to write what is not detected. */
export const OWN_RECIPE =
  'write a recipe, .harness/env.json: {"detected": true, "setup": [{"run": "COMMAND"}]}';

/** For a registry without a preset: the hosts that the project's own files name, for a person who may grant them. */
export function unpreset(tool: string, texts: readonly (string | undefined)[], address: RegExp): string {
  const hosts = new Set(
    texts.flatMap((text) => [...(text ?? "").matchAll(address)].map(([, host = ""]) => host.toLowerCase())),
  );
  const named = [...hosts]
    .filter((host) => /^[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?$/.test(host))
    .slice(0, 8);
  return `${tool}'s registry is in no preset: --allow-domain ${named.length === 0 ? "HOST" : named.join(",")}`;
}
