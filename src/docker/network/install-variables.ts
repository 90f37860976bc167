/**
 * Rules that make installations from granted registries safer, as far as package managers take them from the
 * environment. A command may set its own: the box contains what then runs, as it contains the project's tests.
 */

interface InstallRules {
  /** Packages whose own scripts may run. */
  readonly install_scripts: readonly string[];
  /** In ms; 0 for none. */
  readonly min_release_age: number;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** `presets`: the granted ones. */
export function installVariables(
  presets: ReadonlySet<string>,
  { install_scripts, min_release_age }: InstallRules,
  now: number,
): Readonly<Record<string, string>> {
  return {
    ...(presets.has("npm") ? NPM : {}),
    // A source distribution is built by its own code, and pip takes no list of those that may.
    ...(presets.has("pip")
      ? install_scripts.length === 0
        ? { PIP_ONLY_BINARY: ":all:" }
        : { PIP_PREFER_BINARY: "1" }
      : {}),
    ...ageVariables(presets, min_release_age, now),
  };
}

/**
 * Allows only releases of at least this age; managers that take no age install new releases as usual (`withoutAge`).
 * Yarns that do not know their own variable refuse to do anything, so it is set only if the version of yarn is known
 * (`yarnAge`).
 */
export function ageVariables(
  presets: ReadonlySet<string>,
  age: number,
  now: number,
): Readonly<Record<string, string>> {
  if (age === 0) return {};
  const before = new Date(now - age).toISOString();
  const minutes = inMinutes(age);
  // pnpm reads npm_config_minimum_release_age until version 10, and pnpm_config_minimum_release_age since 11.
  const npm = {
    npm_config_before: before,
    npm_config_minimum_release_age: minutes,
    pnpm_config_minimum_release_age: minutes,
  };
  const pip = {
    UV_EXCLUDE_NEWER: before,
    PIP_UPLOADED_PRIOR_TO: before,
    POETRY_SOLVER_MIN_RELEASE_AGE: String(Math.ceil(age / DAY)),
  };
  return { ...(presets.has("npm") ? npm : {}), ...(presets.has("pip") ? pip : {}) };
}

const inMinutes = (age: number): string => String(Math.ceil(age / MINUTE));

/** For a yarn of this version. */
export const yarnAge = (version: string | null, age: number): Readonly<Record<string, string>> =>
  age > 0 && takesAge("yarn", version) ? { YARN_NPM_MINIMAL_AGE_GATE: inMinutes(age) } : {};

/** The first releases that take an age. */
const FIRST = { pnpm: [10, 16], yarn: [4, 10], uv: [0, 1], poetry: [2, 4] } as const;

/** `version` is the wanted one: for a part that it leaves out the newest is installed; null: the newest, or yarn 1. */
function takesAge(manager: keyof typeof FIRST, version: string | null): boolean {
  if (version === null) return manager !== "yarn";
  const [major = 0, minor = Infinity] = version.split(".").map(Number);
  const [first, second] = FIRST[manager];
  return major > first || (major === first && minor >= second);
}

/** Those of these managers, in these versions, that install new releases as usual. */
export const managersWithoutAge = (
  managers: Readonly<Partial<Record<keyof typeof FIRST, string | null | undefined>>>,
): readonly string[] =>
  (Object.keys(FIRST) as (keyof typeof FIRST)[]).flatMap((name) => {
    const version = managers[name];
    if (version === undefined || takesAge(name, version)) return [];
    return [version === null ? `${name} 1` : `${name} ${version}`];
  });

/** For npm, pnpm and both yarns; this also turns off the scripts before and after one that is run by its name. */
const NPM = {
  npm_config_ignore_scripts: "true",
  pnpm_config_ignore_scripts: "true",
  YARN_IGNORE_SCRIPTS: "true",
  YARN_ENABLE_SCRIPTS: "false",
  YARN_ENABLE_IMMUTABLE_INSTALLS: "true",
} as const;

/** Presets whose managers take no age: they install new releases as usual. */
export const withoutAge = (presets: readonly string[]): readonly string[] =>
  presets.filter((preset) => ["cargo", "go", "maven", "apt"].includes(preset));

/** The note about these names; undefined if there are none. */
export const ageNote = (names: readonly string[]): string | undefined =>
  names.length === 0
    ? undefined
    : `min_release_age has no effect on ${names.join(", ")}: new releases are installed there as usual`;
