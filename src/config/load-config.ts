import { formatSize } from "../core/bounds.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { NotRegularError, readRegular, TooLargeError } from "../platform/safe-files.ts";
import { nested, parseConfigDocument, valueFromText } from "./config-document.ts";
import { readLayer } from "./config-layers.ts";
import { type Env, placesFrom, projectConfigFile } from "./places.ts";
import { DEFAULTS, type Layer, SETTING_KEYS, type SettingKey, type Settings } from "./settings-schema.ts";

export interface Config {
  readonly settings: Settings;
  /** Who set each value: `default`, a file, an environment variable or a flag; `search.url` is there once set. */
  readonly origins: Readonly<Record<string, string>>;
}

export interface ConfigRequest {
  readonly env: Env;
  readonly workspace: string;
  /** A project's own file counts only after `harness trust`. */
  readonly trusted: boolean;
  /** Settings given as flags, by the flag that gave them. */
  readonly flags: ReadonlyMap<string, { readonly key: SettingKey; readonly value: unknown }>;
}

interface Source {
  readonly origin: string;
  readonly layer: Layer;
}

/** defaults < user file < project file (trusted only) < environment < flags. */
export async function loadConfig(request: ConfigRequest): Promise<Config> {
  const [file, olderFile] = placesFrom(request.env).configFiles;
  const files = [olderFile, file, ...(request.trusted ? [projectConfigFile(request.workspace)] : [])];
  const sources = [...(await Promise.all(files.map(fileSource))).flat(), ...envSources(request.env)];
  return merge([...sources, ...flagSources(request.flags)]);
}

async function fileSource(file: string): Promise<Source[]> {
  const text = await readConfigText(file);
  if (text === undefined) return [];
  const document = parseConfigDocument(file, text);
  return [{ origin: file, layer: readLayer(document.value, document.at) }];
}

/** HARNESS_<KEY>, e.g. HARNESS_CHAT_MODEL, HARNESS_SEARCH_STORE. */
export const envNameOf = (dotted: string): string => `HARNESS_${dotted.toUpperCase().replaceAll(".", "_")}`;

function envSources(env: Env): Source[] {
  const keys = [...SETTING_KEYS.filter((key) => key !== "search"), "search.store", "search.url"] as const;
  return keys.flatMap((key) => {
    const variable = envNameOf(key);
    const text = env[variable];
    if (text === undefined || text === "") return [];
    return [{ origin: variable, layer: readLayer(nested(key, valueFromText(key, text)), () => variable) }];
  });
}

function flagSources(flags: ConfigRequest["flags"]): Source[] {
  return [...flags].map(([flag, { key, value }]) => {
    const raw = typeof value === "string" ? valueFromText(key, value) : value;
    return { origin: flag, layer: readLayer({ [key]: raw }, () => flag) };
  });
}

/** The settings that a source sets; of `search` also each half. */
function pathsIn(layer: Layer): readonly string[] {
  const halves = Object.keys(layer.search ?? {}).map((half) => `search.${half}`);
  const plain = Object.keys(layer).filter((key) => key !== "search");
  return [...plain, ...(halves.length > 0 ? ["search", ...halves] : [])];
}

function merge(sources: readonly Source[]): Config {
  let settings: Settings = DEFAULTS;
  const origins: Record<string, string> = Object.fromEntries(SETTING_KEYS.map((key) => [key, "default"]));
  for (const { origin, layer } of sources) {
    settings = { ...settings, ...layer, search: { ...settings.search, ...layer.search } } as Settings;
    for (const key of pathsIn(layer)) origins[key] = origin;
  }
  return { settings, origins };
}

const MAX_CONFIG_BYTES = 2 ** 20;

/** undefined when there is no such file; any other failure to read it ends the run. */
export async function readConfigText(file: string): Promise<string | undefined> {
  try {
    return decode(await readRegular(file, { links: "follow", max: MAX_CONFIG_BYTES }).catch(refused));
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

function refused(thrown: unknown): never {
  if (thrown instanceof TooLargeError)
    throw new Error(
      `it has ${formatSize(thrown.size)}; settings have at most ${formatSize(MAX_CONFIG_BYTES)}`,
    );
  if (!(thrown instanceof NotRegularError)) throw thrown;
  if (thrown.what === "folder") throw new Error("EISDIR: illegal operation on a directory, read");
  throw new Error("it is a pipe or a device, not a file");
}

/** Bytes that are no text would come back as other bytes when the file is written again. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8");
  }
}
