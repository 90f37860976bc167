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
  const before = new Date(now - min_release_age).toISOString();
  const minutes = String(Math.ceil(min_release_age / MINUTE));
  return {
    ...(presets.has("npm") ? NPM : {}),
    ...(presets.has("npm") && min_release_age > 0
      ? {
          npm_config_before: before,
          npm_config_minimum_release_age: minutes,
          YARN_NPM_MINIMAL_AGE_GATE: minutes,
        }
      : {}),
    // A source distribution is built by its own code, and pip takes no names of those that may.
    ...(presets.has("pip")
      ? install_scripts.length === 0
        ? { PIP_ONLY_BINARY: ":all:" }
        : { PIP_PREFER_BINARY: "1" }
      : {}),
    ...(presets.has("pip") && min_release_age > 0
      ? { UV_EXCLUDE_NEWER: before, PIP_UPLOADED_PRIOR_TO: before }
      : {}),
  };
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
