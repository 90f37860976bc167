import { userInfo } from "node:os";
import path from "node:path";
import { makeFolder } from "../platform/folders.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Where harness keeps its own files. Nothing of it is ever inside a repository. */
export interface Places {
  readonly home: string;
  /** The user's config file, and an older place: both are read, and the first goes before the other. */
  readonly configFiles: readonly [string, string];
  readonly state: string;
  readonly cache: string;
}

/** XDG base directories; a relative value is not valid there and counts as unset, and so for HOME. */
export function placesFrom(env: Env): Places {
  const home = homeFrom(env);
  const base = (name: string, fallback: string): string => {
    const value = env[name];
    return path.join(
      value !== undefined && path.isAbsolute(value) ? value : path.join(home, fallback),
      "harness",
    );
  };
  return {
    home,
    configFiles: [
      path.join(base("XDG_CONFIG_HOME", ".config"), "config.json"),
      path.join(home, ".harness", "config.json"),
    ],
    state: base("XDG_STATE_HOME", ".local/state"),
    cache: base("XDG_CACHE_HOME", ".cache"),
  };
}

/** Where Node keeps what it compiled, made; undefined where none can be: Node's own making of it may never end there. */
export function compiledIn(env: Env): string | undefined {
  const folder = path.join(placesFrom(env).cache, "compile");
  try {
    makeFolder(folder);
    return folder;
  } catch {
    return undefined;
  }
}

function homeFrom(env: Env): string {
  const named = env["HOME"];
  if (named !== undefined && path.isAbsolute(named)) return named;
  try {
    return path.resolve("/", userInfo().homedir);
  } catch {
    return "/";
  }
}

/** PATH without its empty and relative entries: those would start programs of the current folder. */
export const hostPath = (given = ""): string =>
  given
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .join(path.delimiter);
