/** The settings and rules in force, and the files that they are read from. */
import { statSync } from "node:fs";
import path from "node:path";
import {
  getNodeValue,
  type Node,
  parse,
  type ParseError,
  parseTree,
  printParseErrorCode,
  visit,
} from "jsonc-parser";
import { formatSize } from "../core/wording.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { NotRegularError, readRegularSync, TooLargeError } from "../platform/safe-files.ts";
import { type Env, placesFrom } from "./places.ts";
import type { SettingsLayer } from "./setting-rules.ts";
import {
  type ChangeDirection,
  changeOf,
  DEFAULTS,
  SEARCH_PATHS,
  SETTING_KEYS,
  type SettingKey,
  type Settings,
  USERS_OWN,
} from "./settings-schema.ts";
import { ALIASES, configError } from "./setting-words.ts";
import type { UserRules } from "../policy/rule.ts";
import { splitGrants } from "../core/network.ts";
import { utf8In } from "../core/raw-data.ts";

/** One kind of file that a project brings, as `harness trust` returns it. */
export interface ProjectText {
  /** Absolute. */
  readonly file: string;
  readonly text: string;
  /** If not trusted, only what tightens counts. */
  readonly trusted: boolean;
}

export interface Config {
  readonly settings: Settings;
  /** Who set each value: `default`, a file, an environment variable or a flag. Has `search.url` once that is set. */
  readonly origins: Readonly<Record<string, string>>;
  /** What became of the project's own file; left out when there is none. */
  readonly project?: ProjectSettings;
}

/** A setting of the project that does not only tighten: its value with and without the project. */
interface IgnoredSetting {
  readonly key: SettingKey;
  readonly from: unknown;
  readonly to: unknown;
}

interface ProjectSettings {
  readonly file: string;
  readonly trusted: boolean;
  /** For a trusted file, only settings that are the user's own. */
  readonly ignored: readonly IgnoredSetting[];
  /** Why nothing in an untrusted file counts. */
  readonly problem?: string;
}

export interface ConfigRequest {
  readonly env: Env;
  /** The project's own settings, which count as a whole only after `harness trust`; undefined when there are none. */
  readonly project: ProjectText | undefined;
  /** Settings given as flags, by the flag that gave them. */
  readonly flags: ReadonlyMap<string, { readonly key: SettingKey; readonly value: unknown }>;
}

interface Source {
  readonly origin: string;
  readonly layer: SettingsLayer;
}

/** defaults < user file < project file (all of it if trusted, else only what tightens) < environment < flags. */
export async function loadConfig(request: ConfigRequest): Promise<Config> {
  const [file, olderFile] = placesFrom(request.env).configFiles;
  const own = (await Promise.all([olderFile, file].map(fileSource))).flat();
  const later = [...(await envSources(request.env)), ...(await flagSources(request.flags))];
  if (request.project === undefined) return merge([...own, ...later]);
  const { source, ...project } = await projectSource(request.project, merge(own).settings);
  return { ...merge([...own, ...source, ...later]), project };
}

/** What a project's settings would change if they were trusted. Throws if they contain a mistake. */
export async function projectChanges(
  env: Env,
  { file, text }: Pick<ProjectText, "file" | "text">,
): Promise<readonly SettingChange[]> {
  const layer = await layerOf(file, text);
  const [own, olderFile] = placesFrom(env).configFiles;
  const sources = (await Promise.all([olderFile, own].map(fileSource))).flat();
  return changesBy(layer, merge(sources).settings);
}

interface ProjectSource extends ProjectSettings {
  readonly source: readonly Source[];
}

/** `under`: the settings in force without the project. */
async function projectSource({ file, text, trusted }: ProjectText, under: Settings): Promise<ProjectSource> {
  if (trusted) {
    const layer = await layerOf(file, text);
    const ignored = changesBy(layer, under)
      .filter(({ key }) => USERS_OWN.has(key))
      .map(withoutChange);
    return { file, trusted, ignored, source: [{ origin: file, layer: withoutUsersOwn(layer) }] };
  }
  try {
    const layer = await layerOf(file, text);
    const { counted, ignored } = splitTightening(layer, under);
    return { file, trusted, ignored, source: [{ origin: file, layer: counted }] };
  } catch (thrown) {
    // A text made to break its parser counts as one that cannot be read.
    return { file, trusted, ignored: [], problem: reasonOf(thrown), source: [] };
  }
}

/** Splits a layer into settings that only tighten, and the others without those that change nothing. */
function splitTightening(
  layer: SettingsLayer,
  under: Settings,
): { readonly counted: SettingsLayer; readonly ignored: readonly IgnoredSetting[] } {
  const changes = changesBy(layer, under);
  const keys = new Set(changes.filter(({ change }) => change === "tightens").map(({ key }) => key));
  const counted = Object.fromEntries(Object.entries(layer).filter(([key]) => keys.has(key as SettingKey)));
  return { counted, ignored: changes.filter(({ change }) => change === "loosens").map(withoutChange) };
}

const withoutUsersOwn = (layer: SettingsLayer): SettingsLayer =>
  Object.fromEntries(Object.entries(layer).filter(([key]) => !USERS_OWN.has(key as SettingKey)));

const withoutChange = ({ key, from, to }: SettingChange): IgnoredSetting => ({ key, from, to });

export interface SettingChange extends IgnoredSetting {
  readonly change: ChangeDirection;
}

/** What a layer would change, key by key, in the order of the schema. */
function changesBy(layer: SettingsLayer, under: Settings): readonly SettingChange[] {
  const after = mergeLayer(under, layer);
  return SETTING_KEYS.filter((key) => layer[key] !== undefined).map((key) => {
    const [from, to] = [under[key], after[key]];
    return { key, from, to, change: changeOf(key, from, to) };
  });
}

/** Checks a value. The rules of all settings are loaded only when there is something to check. */
async function checkedLayer(
  value: unknown,
  at: (keys: readonly PropertyKey[]) => string,
): Promise<SettingsLayer> {
  const { readLayer } = await import("./setting-rules.ts");
  return readLayer(value, at);
}

function layerOf(file: string, text: string): Promise<SettingsLayer> {
  const document = parseConfigDocument(file, text);
  return checkedLayer(document.value, document.at);
}

async function fileSource(file: string): Promise<Source[]> {
  const text = readConfigText(file);
  if (text === undefined) return [];
  return [{ origin: file, layer: await layerOf(file, text) }];
}

/** HARNESS_<KEY>, such as HARNESS_CHAT_MODEL, HARNESS_SEARCH_STORE. */
export const envNameOf = (dotted: string): string => `HARNESS_${dotted.toUpperCase().replaceAll(".", "_")}`;

async function envSources(env: Env): Promise<Source[]> {
  const plain = SETTING_KEYS.filter((key) => key !== "search");
  // Aliases come first, so that the real name wins when both are set.
  const keys = [...Object.keys(ALIASES), ...plain, ...SEARCH_PATHS] as (typeof plain)[number][];
  const sources: Source[] = [];
  for (const key of keys) {
    const origin = envNameOf(key);
    const text = env[origin];
    if (text === undefined || text === "") continue;
    const value = valueFromText(ALIASES[key] ?? key, text);
    sources.push({ origin, layer: await checkedLayer(nested(key, value), () => origin) });
  }
  return sources;
}

async function flagSources(flags: ConfigRequest["flags"]): Promise<Source[]> {
  const sources: Source[] = [];
  for (const [origin, { key, value }] of flags) {
    const raw = typeof value === "string" ? valueFromText(key, value) : value;
    sources.push({ origin, layer: await checkedLayer({ [key]: raw }, () => origin) });
  }
  return sources;
}

/** The settings that a source sets; for `search`, also each of its keys. */
function pathsIn(layer: SettingsLayer): readonly string[] {
  const halves = Object.keys(layer.search ?? {}).map((half) => `search.${half}`);
  const plain = Object.keys(layer).filter((key) => key !== "search");
  return [...plain, ...(halves.length > 0 ? ["search", ...halves] : [])];
}

const mergeLayer = (settings: Settings, layer: SettingsLayer): Settings =>
  ({
    ...settings,
    ...layer,
    search: { ...settings.search, ...layer.search },
    deny_domains: [...new Set([...settings.deny_domains, ...(layer.deny_domains ?? [])])],
    secrets: layer.secrets === undefined ? settings.secrets : withKnownHosts(settings, layer.secrets),
  }) as Settings;

function merge(sources: readonly Source[]): Config {
  let settings: Settings = DEFAULTS;
  const origins: Record<string, string> = Object.fromEntries(SETTING_KEYS.map((key) => [key, "default"]));
  for (const { origin, layer } of sources) {
    settings = mergeLayer(settings, layer);
    for (const key of pathsIn(layer)) origins[key] = origin;
  }
  return { settings, origins };
}

/** A secret given only by name keeps the hosts that were set for it before. */
const withKnownHosts = ({ secrets }: Settings, named: Settings["secrets"]): Settings["secrets"] =>
  Object.fromEntries(
    Object.entries(named).map(([name, hosts]) => [name, hosts.length === 0 ? (secrets[name] ?? []) : hosts]),
  );

export interface RulesRequest {
  readonly env: Env;
  /** The rules of the project; undefined when it has none, or none that can be read. */
  readonly project: ProjectText | undefined;
}

/**
 * All rules in force; their examples are run. A mistake in a file of the user or of a trusted project ends the command:
 * no rule is left out. Of an untrusted project, only rules that ask or deny count, and a file with a mistake counts not
 * at all.
 */
export async function loadRules({ env, project }: RulesRequest): Promise<UserRules> {
  const user = await presentFile(userPolicyFiles(env));
  if (user === undefined && project === undefined) return [];
  // The meaning and syntax of rules are loaded only if there are some.
  const { rulesOf, tighteningRules } = await import("./policy-rules-file.ts");
  const { home } = placesFrom(env);
  const own = user === undefined ? [] : await rulesOf({ ...user, origin: "user" }, home);
  if (project === undefined) return own;
  const theirs = project.trusted
    ? await rulesOf({ ...project, origin: "project" }, home)
    : await tighteningRules(project, home);
  return [...own, ...theirs];
}

const NAMES = ["policy.toml", "policy.json"] as const;
const policyFilesBeside = (file: string): readonly string[] =>
  NAMES.map((name) => path.join(path.dirname(file), name));

/** Where a user's rules may be; the first is the place for new ones. */
export const userPolicyFiles = (env: Env): readonly string[] =>
  placesFrom(env).configFiles.flatMap(policyFilesBeside);

export interface PolicyText {
  readonly file: string;
  readonly text: string;
}

/** The one file of these that exists. With two, it would be unclear which one counts. */
export async function presentFile(files: readonly string[]): Promise<PolicyText | undefined> {
  const texts = files.map((file) => ({ file, text: readConfigText(file) }));
  const present = texts.flatMap(({ file, text }) => (text === undefined ? [] : [{ file, text }]));
  const [first, second] = present;
  if (first === undefined || second === undefined) return first;
  throw new HarnessError(
    EXIT.usage,
    `both ${first.file} and ${second.file} exist; only one policy file is allowed`,
    `move the rules from ${second.file} into ${first.file}, then remove ${second.file}`,
  );
}

const MAX_CONFIG_BYTES = 2 ** 20;

/** undefined when there is no such file; any other failure to read it ends the run. */
export function readConfigText(file: string): string | undefined {
  try {
    // Most users have one of two files at most, and an error costs more than a look.
    if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
    return decode(bytesOf(file));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

function bytesOf(file: string): Buffer {
  try {
    return readRegularSync(file, { links: "follow", max: MAX_CONFIG_BYTES });
  } catch (thrown) {
    return refused(thrown);
  }
}

function refused(thrown: unknown): never {
  if (thrown instanceof TooLargeError)
    throw new Error(`it is ${formatSize(thrown.size)}; the limit is ${formatSize(MAX_CONFIG_BYTES)}`);
  if (!(thrown instanceof NotRegularError)) throw thrown;
  if (thrown.what === "folder") throw new Error("EISDIR: illegal operation on a directory, read");
  throw new Error("it is a pipe or a device, not a file");
}

/** Refuses bytes that are not text: they would be changed when the file is written back. */
function decode(bytes: Buffer): string {
  const text = utf8In(bytes);
  if (text === undefined) throw new Error("it is not UTF-8");
  return text;
}

/** A config file's text as a value, with the position of each key. JSON with comments. */
export interface ConfigDocument {
  readonly value: unknown;
  /** `file:line:column` of the value at this path of keys, or of the nearest existing value around it. */
  readonly at: (keys: readonly PropertyKey[]) => string;
}

export function parseConfigDocument(file: string, text: string): ConfigDocument {
  const errors: ParseError[] = [];
  const body = text.startsWith("\uFEFF") ? ` ${text.slice(1)}` : text;
  const place = (offset: number): string => `${file}:${lineAndColumn(body, offset)}`;
  refuseDepth(body, place);
  const root = parseTree(body, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) {
    const what = printParseErrorCode(first.error)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
      .toLowerCase();
    throw configError(place(first.offset), `${what}; expected a JSON object`);
  }
  if (root?.type !== "object")
    throw configError(file, `expected a JSON object, found ${root?.type ?? "nothing"}`);
  refuseDuplicates(root, place);
  return { value: getNodeValue(root), at: (keys) => place(nearestNode(root, keys).offset) };
}

/** The parser recurses; no setting is nested deeper than a few levels. */
function refuseDepth(text: string, place: (offset: number) => string): void {
  let depth = 0;
  const enter = (offset: number): void => {
    depth += 1;
    if (depth > MAX_DEPTH) throw configError(place(offset), `nested more than ${MAX_DEPTH} levels deep`);
  };
  const leave = (): void => {
    depth -= 1;
  };
  visit(text, { onObjectBegin: enter, onArrayBegin: enter, onObjectEnd: leave, onArrayEnd: leave });
}

const MAX_DEPTH = 32;

function refuseDuplicates(node: Node, place: (offset: number) => string): void {
  const seen = new Set<unknown>();
  for (const child of node.children ?? []) {
    if (node.type === "object") {
      const key: unknown = child.children?.[0]?.value;
      if (seen.has(key)) throw configError(place(child.offset), `${String(key)}: duplicate key`);
      seen.add(key);
    }
    refuseDuplicates(child, place);
  }
}

function nearestNode(root: Node, keys: readonly PropertyKey[]): Node {
  let node = root;
  for (const key of keys) {
    const inner =
      node.type === "array"
        ? node.children?.[Number(key)]
        : node.children?.find((property) => property.children?.[0]?.value === key)?.children?.[1];
    if (inner === undefined) return node;
    node = inner;
  }
  return node;
}

function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}

const AS_WRITTEN: ReadonlySet<string> = new Set([
  "provider",
  "engine",
  "base_url",
  "chat_model",
  "embed_model",
  "mode",
  "on_ask",
  "isolation",
  "image",
  "env",
  "check",
  "memory",
  "network_upload",
  "network_download",
  "network_idle_timeout",
  "park_timeout",
  "timeout",
  "min_release_age",
  "connect_timeout",
  "first_token_timeout",
  "idle_timeout",
  "search.store",
  "search.url",
]);

/** A setting's value from one word of text: a flag, an environment variable or `config set`. */
export function valueFromText(key: SettingKey | `search.${string}`, text: string): unknown {
  if (AS_WRITTEN.has(key)) return text === "null" ? null : text;
  if (key === "allow_domains" && !text.trim().startsWith("[")) return splitGrants(text);
  if ((key === "install_scripts" || key === "deny_domains") && !text.trim().startsWith("["))
    return wordsIn(text);
  if (key === "secrets" && !text.trim().startsWith("{"))
    return text.split(/\s+/).filter((word) => word !== "");
  const errors: unknown[] = [];
  const value: unknown = parse(text, errors as never[]);
  return errors.length > 0 ? text : value;
}

const wordsIn = (text: string): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== "");

/** `{search: {store: v}}` for `search.store`, `{mode: v}` for `mode`. */
export function nested(dotted: string, value: unknown): Record<string, unknown> {
  const [head = "", ...rest] = dotted.split(".");
  return { [head]: rest.length === 0 ? value : nested(rest.join("."), value) };
}
