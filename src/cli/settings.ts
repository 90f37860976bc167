import { Flags } from "@oclif/core";
import type { LimitValues } from "../agent/limits.ts";
import { type Host, hostFrom, settingsOnEngine } from "../app/host.ts";
import { projectText } from "../app/project/project-trust.ts";
import { type Config, type ConfigRequest, loadConfig } from "../config/load-config.ts";
import { type SettingKey } from "../config/settings-schema.ts";
import { ISOLATIONS, ON_ASK, PROVIDERS, STORES } from "../config/setting-words.ts";
import { DURATION_FORM, parseDuration } from "../core/wording.ts";
import { MODES, type OnAsk } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { INTENTS } from "../core/model-provider.ts";
import type { CommandContext } from "../policy/decide.ts";
import { makeStreamsPlain } from "../render/tty/output.ts";

/** The flags that are settings, for every command that prepares or starts a run. */
export const settingFlags = {
  mode: Flags.option({ options: MODES, description: "what the box may touch", helpGroup: "RUN" })(),
  cwd: Flags.string({
    description: "workspace folder (default: the current folder)",
    helpGroup: "RUN",
    helpValue: "DIR",
  }),
  model: Flags.string({ description: "chat model", helpGroup: "MODEL", helpValue: "NAME" }),
  provider: Flags.option({ options: PROVIDERS, description: "provider of the model", helpGroup: "MODEL" })(),
  "base-url": Flags.string({
    description: "address of the model server",
    helpGroup: "MODEL",
    helpValue: "URL",
  }),
  engine: Flags.string({
    description: "where boxes are created: unix://, tcp://, ssh://, kubernetes:// or a Docker context",
    helpGroup: "BOX",
    helpValue: "ADDRESS",
  }),
  isolation: Flags.option({
    options: ISOLATIONS,
    description:
      "how the box gets the folder: the folder itself (bind), a layer over it (overlay) or a copy (copy)",
    helpGroup: "BOX",
  })(),
  image: Flags.string({ description: "sandbox image to use instead of the default one", helpGroup: "BOX" }),
  env: Flags.string({
    description: "name of one of your recipes, or `none` to use no environment",
    helpGroup: "BOX",
    helpValue: "NAME",
  }),
  "allow-domain": Flags.string({
    multiple: true,
    // Words after the value are the command's own arguments again.
    multipleNonGreedy: true,
    description:
      "host that the box may reach (NAME[:PORTS][:METHODS][:private]), or a preset: npm, pip, cargo, go, maven, apt, git",
    helpGroup: "BOX",
    helpValue: "NAME",
  }),
  secret: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    description:
      "your environment variable NAME: its value is put into requests to HOST and never enters the box",
    helpGroup: "BOX",
    helpValue: "NAME@HOST",
  }),
  canaries: Flags.boolean({
    description: "put fake keys and sockets into the box; a command that touches one ends the run",
    helpGroup: "BOX",
  }),
  memory: Flags.string({ description: "memory limit of the box", helpGroup: "BOX", helpValue: "2g" }),
  cpus: Flags.string({ description: "number of processors for the box", helpGroup: "BOX", helpValue: "N" }),
  pids: Flags.string({
    description: "maximum number of processes in the box",
    helpGroup: "BOX",
    helpValue: "N",
  }),
  runtime: Flags.string({
    description: "another container runtime of the engine, e.g. runsc (gVisor)",
    helpGroup: "BOX",
    helpValue: "NAME",
  }),
  timeout: Flags.string({ description: "time limit for one command", helpGroup: "BOX", helpValue: "120s" }),
};

/** Selects a candidate, for the commands that take a session. */
export const attemptFlag = Flags.integer({
  description: "use this candidate of a run with --attempts, counted from 1",
  helpValue: "N",
  min: 1,
});

/** Another machine's session, for the commands that read one. */
export const bundleFlag = Flags.string({
  description: "use the session in this file or in the object s3://BUCKET/KEY",
  helpValue: "FILE",
});

/** A bundle has a single session, so an id makes no sense. */
export function refuseIdOfBundle(id: string | undefined, words: string): void {
  if (id === undefined) return;
  const what = "a bundle holds one session: leave out the ID";
  throw new HarnessError(EXIT.usage, what, `harness ${words} --bundle FILE`);
}

/** Where an index is kept, for the commands that use one. */
export const storeFlag = Flags.option({ options: STORES, description: "where the index is kept" })();

/** The settings that shape a box, for the commands that open one. */
export const boxFlags = {
  mode: settingFlags.mode,
  cwd: settingFlags.cwd,
  engine: settingFlags.engine,
  isolation: settingFlags.isolation,
  image: settingFlags.image,
  env: settingFlags.env,
  "allow-domain": settingFlags["allow-domain"],
  secret: settingFlags.secret,
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
  engine: "engine",
  isolation: "isolation",
  image: "image",
  env: "env",
  canaries: "canaries",
  "allow-domain": "allow_domains",
  secret: "secrets",
  memory: "memory",
  cpus: "cpus",
  pids: "pids",
  timeout: "timeout",
  "max-turns": "max_turns",
  check: "check",
  attempts: "attempts",
  "on-ask": "on_ask",
  "park-timeout": "park_timeout",
};

/** The settings in force for a command, each with its origin. `overrides`: by the session that the command continues. */
export async function configFor(
  flags: Readonly<Record<string, unknown>>,
  overrides: ConfigRequest["flags"] = new Map(),
): Promise<Config> {
  const project = await projectText(hostFrom(process.env), workspaceOf(flags), "settings");
  return configWith(flags, project, overrides);
}

/** The same for a session that is continued; if its model is not the one of the settings, that is said. */
export async function configContinued(
  flags: Readonly<Record<string, unknown>> & { readonly quiet: boolean },
  overrides: ConfigRequest["flags"] | undefined,
): Promise<Config> {
  const config = await configFor(flags, overrides);
  if (overrides === undefined || ![...overrides.values()].some(({ key }) => key === "chat_model"))
    return config;
  const [now, set] = [config.settings, (await configFor(flags)).settings];
  if (now.chat_model !== set.chat_model || now.provider !== set.provider || now.base_url !== set.base_url) {
    const { noteTo } = await import("../app/stderr-messages.ts");
    noteTo(flags.quiet)(
      `continues with ${now.chat_model} (${now.provider}), the model of the session; --provider and --model choose another`,
    );
  }
  return config;
}

/** The same, ignoring the project of the current folder. */
export const ownConfigFor = (flags: Readonly<Record<string, unknown>>): Promise<Config> =>
  configWith(flags, undefined);

async function configWith(
  flags: Readonly<Record<string, unknown>>,
  project: Awaited<ReturnType<typeof projectText>>,
  overrides: ConfigRequest["flags"] = new Map(),
): Promise<Config> {
  const entries = Object.entries(KEY_OF_FLAG)
    .filter(([flag]) => flags[flag] !== undefined)
    .map(([flag, key]) => [`--${flag}`, { key, value: flags[flag] }] as const);
  const store = flags["store"];
  const search = store === undefined ? [] : [["--store", { key: "search", value: { store } }] as const];
  const all = new Map([...overrides, ...entries, ...search]);
  const loaded = await loadConfig({ env: process.env, project, flags: all });
  const config = await settingsOnEngine(hostFrom(process.env), loaded);
  if (config.settings.plain) makeStreamsPlain();
  return config;
}

export function workspaceOf(flags: Readonly<Record<string, unknown>>): string {
  const named = flags["cwd"];
  // An empty path would mean the current folder, which a user with an empty variable did not intend.
  if (named === "")
    throw new HarnessError(EXIT.usage, "--cwd needs a folder", "--cwd FOLDER, or leave it out");
  return typeof named === "string" ? named : currentFolder();
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (thrown) {
    throw new HarnessError(
      EXIT.usage,
      "the current folder no longer exists",
      "cd to a folder that exists",
      thrown,
    );
  }
}

const BUDGET = "BUDGET";

/** The flags of `run` in addition to the settings. */
export const runFlags = {
  "max-turns": Flags.string({
    description: "maximum number of requests to the model (40)",
    helpGroup: BUDGET,
    helpValue: "N",
  }),
  "max-time": Flags.string({
    description: "maximum time for the whole run",
    helpGroup: BUDGET,
    helpValue: "30m",
  }),
  "max-tokens": Flags.string({
    description: "maximum number of tokens, read and written",
    helpGroup: BUDGET,
    helpValue: "N",
  }),
  "max-cost": Flags.string({
    description: "maximum cost, by the setting `prices`",
    helpGroup: BUDGET,
    helpValue: "X",
  }),
  "max-tool-calls": Flags.string({
    description: "maximum number of tool calls",
    helpGroup: BUDGET,
    helpValue: "N",
  }),
  intent: Flags.option({
    options: INTENTS,
    description:
      "kind of task, instead of a guess: an answer (direct), an answer about the repository (repo), a change (change) or web pages (web)",
    helpGroup: "TASK",
  })(),
  "output-schema": Flags.string({
    description: "JSON Schema that the answer must match",
    helpGroup: "TASK",
    helpValue: "FILE",
  }),
  continue: Flags.boolean({
    description: "continue the last session of this folder",
    helpGroup: "TASK",
    exclusive: ["resume"],
  }),
  resume: Flags.string({ description: "continue this session", helpGroup: "TASK", helpValue: "ID" }),
  "on-ask": Flags.option({
    options: ON_ASK,
    description:
      "what happens to a call that needs approval: it is refused (refuse), it runs if it is contained (contained, the default), or otherwise the run waits for you (park)",
    helpGroup: "TASK",
  })(),
  "park-timeout": Flags.string({
    description: "how long to keep the box of a parked run as it is; 0 does not keep it",
    helpGroup: "TASK",
    helpValue: "24h",
  }),
  fork: Flags.boolean({
    description: "with --continue or --resume: continue in a new session and leave the earlier one unchanged",
    helpGroup: "TASK",
  }),
  strict: Flags.boolean({
    description:
      "end with 4 after any refusal; end with 1 if the model answered about the repository without looking at it, claimed a change that is not there, claimed without proof that tests pass, or tampered with a check",
    helpGroup: "TASK",
  }),
  check: Flags.string({
    description: "command that must succeed in the box when the model says that it is done",
    helpGroup: "PROOF",
    helpValue: "CMD",
  }),
  "no-verify": Flags.boolean({
    description: "run no check, not even the project's own tests",
    helpGroup: "PROOF",
    exclusive: ["check"],
  }),
  attempts: Flags.string({
    description:
      "number of candidates from the same start, each in its own layer; the first one that passes the check is applied",
    helpGroup: "PROOF",
    helpValue: "N",
  }),
  jobs: Flags.integer({
    description: "with --attempts: how many candidates run side by side (1)",
    helpGroup: "PROOF",
    helpValue: "N",
    min: 1,
    max: 16,
  }),
  record: Flags.boolean({
    description:
      "write down the smallest policy and grants that would have been enough; this changes nothing",
    helpGroup: "TASK",
  }),
  preflight: Flags.boolean({
    description:
      "start by showing the model the file names, the files that the task names and the output of the check; automatic for small models",
    helpGroup: "TASK",
  }),
};

export interface BudgetFlags {
  readonly "max-time"?: string | undefined;
  readonly "max-tokens"?: string | undefined;
  readonly "max-cost"?: string | undefined;
  readonly "max-tool-calls"?: string | undefined;
}

/** The turns come from the settings, which already include the flag. */
export function limitsFrom(flags: BudgetFlags, turns: number): LimitValues {
  const time = flags["max-time"];
  const ms = time === undefined ? undefined : parseDuration(time);
  if (time !== undefined && (ms === undefined || ms === 0))
    throw flagError("max-time", time, DURATION_FORM, "30m");
  const tokens = wholeFrom("max-tokens", flags["max-tokens"]);
  const calls = wholeFrom("max-tool-calls", flags["max-tool-calls"]);
  const cost = costFrom(flags["max-cost"]);
  return {
    turns,
    ...(ms === undefined ? {} : { ms }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(calls === undefined ? {} : { calls }),
    ...(cost === undefined ? {} : { cost }),
  };
}

function wholeFrom(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : 0;
  if (value < 1) throw flagError(flag, text, "a whole number, at least 1", "50");
  return value;
}

function costFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,12}(?:\.\d{1,9})?$/.test(text.trim()) ? Number(text) : 0;
  if (value <= 0) throw flagError("max-cost", text, "a number above 0", "0.50");
  return value;
}

const flagError = (flag: string, typed: string, expected: string, example: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--${flag}: expected ${expected}, found ${JSON.stringify(typed)}`,
    `harness run --${flag} ${example} "…"`,
  );

/** What the flags, the settings and the user's rules say about the judging of commands. */
export async function judgingFor(
  host: Host,
  flags: Readonly<Record<string, unknown>>,
): Promise<CommandContext & { readonly rules: NonNullable<CommandContext["rules"]>; readonly onAsk: OnAsk }> {
  const {
    mode,
    on_ask: onAsk,
    allow_domains: granted,
    deny_domains: denied,
  } = (await configFor(flags)).settings;
  const { userPolicy } = await import("../app/project/policy-context.ts");
  return { ...(await userPolicy(host, workspaceOf(flags))), mode, onAsk, granted, denied };
}
