/**
 * What makes installations from granted registries safer, as far as managers of packages take it from the environment. A
 * command may bring its own: the box holds what then runs, as it holds the project's tests.
 */

interface InstallRules {
  /** Packages whose own scripts may run. */
  readonly install_scripts: readonly string[];
  /** In ms; 0 for none. */
  readonly min_release_age: number;
}

const MINUTE = 60_000;

/** `presets`: those that are granted. */
export function installVariables(
  presets: ReadonlySet<string>,
  { install_scripts, min_release_age }: InstallRules,
  now: number,
): Readonly<Record<string, string>> {
  return {
    ...(presets.has("npm") ? NPM : {}),
    // A source distribution is built by its own code, and pip takes no names of those that may.
    ...(presets.has("pip")
      ? install_scripts.length === 0
        ? { PIP_ONLY_BINARY: ":all:" }
        : { PIP_PREFER_BINARY: "1" }
      : {}),
    ...ageVariables(presets, min_release_age, now),
  };
}

/** Only releases that are as old as that; those of managers that take no age are taken as ever (`withoutAge`). */
export function ageVariables(
  presets: ReadonlySet<string>,
  age: number,
  now: number,
): Readonly<Record<string, string>> {
  if (age === 0) return {};
  const before = new Date(now - age).toISOString();
  const minutes = String(Math.ceil(age / MINUTE));
  const npm = {
    npm_config_before: before,
    npm_config_minimum_release_age: minutes,
    YARN_NPM_MINIMAL_AGE_GATE: minutes,
  };
  const pip = { UV_EXCLUDE_NEWER: before, PIP_UPLOADED_PRIOR_TO: before };
  return { ...(presets.has("npm") ? npm : {}), ...(presets.has("pip") ? pip : {}) };
}

/** npm and pnpm, both yarns; scripts that stand before and behind one that is run by its name are off with them. */
const NPM = {
  npm_config_ignore_scripts: "true",
  YARN_IGNORE_SCRIPTS: "true",
  YARN_ENABLE_SCRIPTS: "false",
  YARN_ENABLE_IMMUTABLE_INSTALLS: "true",
} as const;

/** Presets of which no manager can be told an age: what is new is taken as ever. */
export const withoutAge = (presets: readonly string[]): readonly string[] =>
  presets.filter((preset) => ["cargo", "go", "maven", "apt"].includes(preset));
