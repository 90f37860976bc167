/** What of a `package.json` is run or decides what is run. */
const PARTS = [
  "scripts",
  "bin",
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "overrides",
  "resolutions",
  "workspaces",
  "packageManager",
  "husky",
  "lint-staged",
  "simple-git-hooks",
  "pre-commit",
  "gypfile",
  "pnpm",
  "allowScripts",
  "trustedDependencies",
];

/** Why a changed `package.json` matters to the host; undefined when nothing of that has changed. */
export function packageReason(before: string | undefined, after: string | undefined): string | undefined {
  const [old, now] = [read(before ?? "{}"), read(after ?? "{}")];
  if (old === undefined || now === undefined) return "npm runs its scripts, and what it depends on";
  const parts = PARTS.filter((part) => JSON.stringify(old[part]) !== JSON.stringify(now[part]));
  if (parts.length === 0) return undefined;
  const scripts = changedNames(old["scripts"], now["scripts"]);
  const others = parts.filter((part) => part !== "scripts");
  return [
    ...(scripts.length === 0 ? [] : [`npm runs its scripts; changed: ${scripts.join(", ")}`]),
    ...(others.length === 0 ? [] : [`changed: ${others.join(", ")}`]),
  ].join("; ");
}

type Fields = Readonly<Record<string, unknown>>;

function read(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function changedNames(before: unknown, after: unknown): readonly string[] {
  const [old, now] = [isFields(before) ? before : {}, isFields(after) ? after : {}];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .toSorted();
}
