import { Flags } from "@oclif/core";
import { type Config, loadConfig } from "../config/load-config.ts";
import { ISOLATIONS, PROVIDERS, type SettingKey, STORES } from "../config/settings-schema.ts";
import { MODES } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";

/** The flags that are settings, for every command that prepares or starts a run. */
export const settingFlags = {
  mode: Flags.option({ options: MODES, description: "what the box may touch", helpGroup: "RUN" })(),
  cwd: Flags.string({ description: "the workspace", helpGroup: "RUN", helpValue: "DIR" }),
  model: Flags.string({ description: "the chat model", helpGroup: "MODEL", helpValue: "NAME" }),
  provider: Flags.option({ options: PROVIDERS, description: "who serves the model", helpGroup: "MODEL" })(),
  "base-url": Flags.string({
    description: "the model server's address",
    helpGroup: "MODEL",
    helpValue: "URL",
  }),
  isolation: Flags.option({ options: ISOLATIONS, description: "how the box sees it", helpGroup: "BOX" })(),
  image: Flags.string({ description: "another sandbox image", helpGroup: "BOX" }),
  "allow-domain": Flags.string({ multiple: true, description: "a host the box may reach", helpGroup: "BOX" }),
  memory: Flags.string({ description: "memory of the box", helpGroup: "BOX", helpValue: "2g" }),
  cpus: Flags.string({ description: "processors of the box", helpGroup: "BOX", helpValue: "N" }),
  pids: Flags.string({ description: "processes in the box", helpGroup: "BOX", helpValue: "N" }),
  runtime: Flags.string({
    description: "another runtime of the engine, e.g. runsc (gVisor)",
    helpGroup: "BOX",
    helpValue: "NAME",
  }),
  timeout: Flags.string({ description: "time for one command", helpGroup: "BOX", helpValue: "120s" }),
};

/** Where an index is kept, for the commands that have one. */
export const storeFlag = Flags.option({ options: STORES, description: "where the index is kept" })();

/** Those that shape a box, for the commands that open one. */
export const boxFlags = {
  mode: settingFlags.mode,
  cwd: settingFlags.cwd,
  isolation: settingFlags.isolation,
  image: settingFlags.image,
  "allow-domain": settingFlags["allow-domain"],
  memory: settingFlags.memory,
  cpus: settingFlags.cpus,
  pids: settingFlags.pids,
  timeout: settingFlags.timeout,
  runtime: settingFlags.runtime,
};

const KEY_OF_FLAG: Readonly<Record<string, SettingKey>> = {
  mode: "mode",
  model: "chat_model",
  provider: "provider",
  "base-url": "base_url",
  isolation: "isolation",
  image: "image",
  "allow-domain": "allow_domains",
  memory: "memory",
  cpus: "cpus",
  pids: "pids",
  timeout: "timeout",
  "max-turns": "max_turns",
  "on-ask": "on_ask",
  "park-timeout": "park_timeout",
};

/** The settings in force for a command, each with its origin. */
export function configFor(flags: Readonly<Record<string, unknown>>): Promise<Config> {
  const given = Object.entries(KEY_OF_FLAG)
    .filter(([flag]) => flags[flag] !== undefined)
    .map(([flag, key]) => [`--${flag}`, { key, value: flags[flag] }] as const);
  const store = flags["store"];
  const search = store === undefined ? [] : [["--store", { key: "search", value: { store } }] as const];
  return loadConfig({
    env: process.env,
    workspace: workspaceOf(flags),
    trusted: false,
    flags: new Map([...given, ...search]),
  });
}

export const workspaceOf = (flags: Readonly<Record<string, unknown>>): string =>
  typeof flags["cwd"] === "string" ? flags["cwd"] : currentFolder();

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, "the current folder is gone", "cd to a folder that is there", thrown);
  }
}
