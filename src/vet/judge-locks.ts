/** Judges the entries of a lock, each beside the others of its lock. */
import { lastName } from "../core/file-names.ts";
import type { Fields } from "../core/raw-data.ts";
import { type Ecosystem, fieldAt, fieldsOf, type LockEntry, OF_GO_MOD, tomlOf } from "./manifests.ts";
import { hasLookAlike, imitatedRegistry, isKnownHost, nearName } from "./known-names.ts";
import type { Findings, LookedAtFile } from "./look/looked-at.ts";

const isPublic = (ecosystem: Ecosystem, host: string): boolean =>
  isKnownHost(host, ecosystem, `${ecosystem} locks`);

export function hostOf(address: string): string {
  const match =
    /^(?:[\w+]+:)*\/\/(?:[^/@\s]*@)?([^/:?#\s]+)/.exec(address) ??
    /^(?:[\w+]+:)?[\w.-]+@([\w.-]+):/.exec(address);
  return (match?.[1] ?? "").toLowerCase();
}

const LOCAL = /^(?:localhost|127\.[\d.]+|\[::1\])$/;

export function judgeLock(entries: readonly LockEntry[], found: Findings): void {
  // Some locks have no address for the usual registry.
  const hosts = countEach(entries.map(({ resolved }) => hostOf(resolved)));
  const known = (host: string): number =>
    Number(host === "" || entries.some(({ ecosystem }) => isPublic(ecosystem, host)));
  const [most] = [...hosts].toSorted((a, b) => b[1] - a[1] || known(b[0]) - known(a[0]))[0] ?? [""];
  const fixed = entries.filter(isFromRegistry);
  const without = fixed.filter(({ integrity }) => integrity === "");
  const some = without.length > 0 && without.length * 2 < fixed.length;
  for (const entry of entries) {
    if (entry.integrity.startsWith(OF_GO_MOD)) continue;
    judgeAddress(entry, most, found);
    judgeName(entry, found);
    if (entry.integrity !== "" || !isFromRegistry(entry)) continue;
    if (some)
      addFinding(entry, "lock.integrity", "it has no integrity hash, although others have one", found);
    else if (isUnproved(entry))
      addFinding(
        entry,
        "lock.integrity",
        `it has no integrity hash, and comes from ${hostOf(entry.resolved)}`,
        found,
      );
  }
}

/** Locks of npm's kind have an integrity for what they fetch, unless somebody took it away. */
const isUnproved = ({ ecosystem, resolved, from }: LockEntry): boolean =>
  ecosystem === "npm" &&
  /(?:^|\/)(?:package-lock|npm-shrinkwrap)\.json$/.test(from) &&
  /^https?:/.test(resolved) &&
  !isPublic(ecosystem, hostOf(resolved)) &&
  !LOCAL.test(hostOf(resolved));

const countEach = (values: readonly string[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
};

const GIT = /^(?:git|github:|gitlab:|bitbucket:|hg\+|svn\+|file:|\.{0,2}\/|https?:\/\/[^?#]+\.git\b)/;
/** npm itself leaves out address and sum of packages for other systems. */
export const isFromRegistry = ({ resolved, ecosystem, version, integrity, from }: LockEntry): boolean =>
  !(resolved === "" && integrity === "" && from.endsWith(".json") && ecosystem === "npm") &&
  ecosystem !== "composer" &&
  !GIT.test(resolved) &&
  !hostOf(resolved).startsWith("codeload.") &&
  version !== "";

type Rule =
  | "lock.host"
  | "lock.insecure"
  | "lock.elsewhere"
  | "lock.name"
  | "lock.integrity"
  | "deps.near-name"
  | "deps.look-alike"
  | "deps.internal"
  | "lock.alias";

const addFinding = (
  { name, version, from, line }: LockEntry,
  rule: Rule,
  words: string,
  found: Findings,
): void =>
  found.add(rule, `${name}${version === "" ? "" : ` ${version}`}: ${words}`, {
    path: from,
    ...(line === undefined ? {} : { line }),
  });

function judgeAddress(entry: LockEntry, most: string, found: Findings): void {
  const { resolved, ecosystem } = entry;
  if (resolved === "") return;
  const host = hostOf(resolved);
  if (/^(?:git\+)?(?:http|git|ftp):\/\//.test(resolved) && !LOCAL.test(host))
    addFinding(entry, "lock.insecure", resolved, found);
  else if (/^(?:\d{1,3}\.){3}\d{1,3}$/.test(host) && !LOCAL.test(host))
    addFinding(entry, "lock.host", resolved, found);
  else if (imitatedRegistry(resolved.replace(/^[\w-]+\+/, "")) !== undefined)
    addFinding(
      entry,
      "lock.host",
      `${resolved}: it imitates ${imitatedRegistry(resolved.replace(/^[\w-]+\+/, ""))}`,
      found,
    );
  else if (host !== "" && host !== most && !isPublic(ecosystem, host))
    addFinding(entry, "lock.host", resolved, found);
  else if (GIT.test(resolved) && ecosystem !== "composer")
    addFinding(entry, "lock.elsewhere", resolved, found);
  else if (host !== "" && !isPublic(ecosystem, host)) addFinding(entry, "lock.elsewhere", resolved, found);
}

/** `…/<name>/-/<file>-<version>.tgz`, as registries of npm's kind write addresses. */
const TARBALL = /\/((?:@|%40)[^/]+(?:\/|%2f)[^/]+|[^/@]+)\/-\/(?:@[^/]+\/)?([^/]+?)\.tgz(?:[?#]|$)/i;

/** Names of the kind that companies give to packages of their own. */
const INTERNAL =
  /^@(?:[\w.-]*[-_.])?(?:internal|intranet|corp|in-?house)(?:[-_.][\w.-]*)?\/|[-_.](?:internal|intranet|corp|in-?house)$/i;
/** Registries in which a name belongs to whoever took it first. */
const SHARED: ReadonlySet<Ecosystem> = new Set<Ecosystem>(["npm", "pip", "cargo", "gem"]);

function judgeInternal(entry: LockEntry, found: Findings): void {
  const { name, real = name, ecosystem, resolved } = entry;
  const isOpen = resolved === "" || isPublic(ecosystem, hostOf(resolved));
  if (isOpen && SHARED.has(ecosystem) && INTERNAL.test(real))
    addFinding(
      entry,
      "deps.internal",
      "fetched from a public registry, where anybody may own that name",
      found,
    );
}

function judgeName(entry: LockEntry, found: Findings): void {
  const { name, real = name, ecosystem, resolved, version } = entry;
  if (hasLookAlike(name))
    addFinding(entry, "deps.look-alike", "it contains a letter of another script", found);
  const near = nearName(real, ecosystem);
  if (near !== undefined) addFinding(entry, "deps.near-name", `its name is close to ${near}`, found);
  judgeInternal(entry, found);
  if (entry.real !== undefined) addFinding(entry, "lock.alias", `it stands for ${entry.real}`, found);
  const match = ecosystem === "npm" ? TARBALL.exec(resolved) : null;
  if (match === null) return;
  const [, path = "", file = ""] = match;
  const fetched = path.replace(/%40/i, "@").replace(/%2f/i, "/");
  const short = lastName(real);
  if (fetched !== real) addFinding(entry, "lock.name", `it is fetched as ${fetched}`, found);
  else if (
    version !== "" &&
    file !== `${short}-${version}` &&
    /^\d/.test(version) &&
    file.startsWith(`${short}-`) &&
    !file.startsWith(`${short}-${version.split("+")[0]}`)
  )
    addFinding(entry, "lock.name", `it is fetched as ${file}`, found);
}

/** The packages that a manifest asks for, by name alone. */
export function manifestEntries({ lower, path, text = "" }: LookedAtFile): readonly LockEntry[] {
  const of = (ecosystem: Ecosystem, groups: readonly unknown[]): readonly LockEntry[] =>
    groups.flatMap((group) =>
      Object.entries(fieldsOf(typeof group === "string" ? undefined : group) ?? {})
        .filter(([, range]) => typeof range !== "string" || !/^(?:workspace|file|link|portal):/.test(range))
        .map(([name, range]) => manifestEntry({ ecosystem, name, range, from: path })),
    );
  if (lower === "package.json")
    return of("npm", groupsOf(fieldsOf(text), ["dependencies", "devDependencies", "optionalDependencies"]));
  if (lower === "composer.json")
    return of("composer", groupsOf(fieldsOf(text), ["require", "require-dev"])).filter(({ name }) =>
      name.includes("/"),
    );
  if (lower === "cargo.toml")
    return of("cargo", groupsOf(tomlOf(text), ["dependencies", "dev-dependencies", "build-dependencies"]));
  if (lower === "pyproject.toml") {
    const listed = fieldAt(tomlOf(text), "project", "dependencies");
    const names = Array.isArray(listed)
      ? listed.flatMap(
          (each: unknown) => /^\s*([\w.-]+)/.exec(typeof each === "string" ? each : "")?.[1] ?? [],
        )
      : [];
    return names.map((name) => manifestEntry({ ecosystem: "pip", name, range: "", from: path }));
  }
  if (lower === "gemfile")
    return Array.from(text.matchAll(/^\s*gem\s*\(?\s*["']([\w.-]+)["']/gm), ([, name = ""]) =>
      manifestEntry({ ecosystem: "gem", name, range: "", from: path }),
    );
  return lower === "go.mod"
    ? Array.from(text.matchAll(/^\s*(?:require\s+)?([\w.-]+\.[\w.-]+\/\S+)\s+v\d/gm), ([, name = ""]) =>
        manifestEntry({ ecosystem: "go", name, range: "", from: path }),
      )
    : [];
}

const groupsOf = (fields: Fields | undefined, groups: readonly string[]): readonly unknown[] =>
  groups.map((group) => fields?.[group]);

interface ManifestDependency {
  readonly ecosystem: Ecosystem;
  readonly name: string;
  readonly range: unknown;
  readonly from: string;
}

function manifestEntry({ ecosystem, name, range, from }: ManifestDependency): LockEntry {
  const alias =
    /^npm:(@?[^@]+)/.exec(typeof range === "string" ? range : "")?.[1] ??
    fieldAt(fieldsOf(typeof range === "string" ? undefined : range), "package");
  return {
    ecosystem,
    name,
    ...(typeof alias === "string" && alias !== name ? { real: alias } : {}),
    version: "",
    resolved: "",
    integrity: "",
    from,
  };
}

/** Compares the dependencies of a manifest with the copy of them in its lock, if the lock keeps one. */
export function judgeFit(manifest: LookedAtFile, lock: LookedAtFile, found: Findings): void {
  const [manifestFields, lockedFields] = [
    fieldsOf(manifest.text),
    fieldAt(fieldsOf(lock.text), "packages", ""),
  ];
  if (
    manifestFields === undefined ||
    fieldsOf(typeof lockedFields === "string" ? undefined : lockedFields) === undefined
  )
    return;
  for (const group of ["dependencies", "devDependencies", "optionalDependencies"]) {
    const [own, locked] = [
      fieldsOf(manifestFields[group]) ?? {},
      fieldsOf(fieldAt(fieldsOf(lockedFields), group)) ?? {},
    ];
    for (const name of new Set([...Object.keys(own), ...Object.keys(locked)])) {
      if (own[name] === locked[name]) continue;
      const [there, here] = [locked[name], own[name]].map((each) =>
        typeof each === "string" ? each : "missing",
      );
      found.add(
        own[name] === undefined ? "lock.extra" : "lock.unfit",
        `${name} is ${there} in the lock, and ${here} in the manifest`,
        { path: lock.path },
      );
    }
  }
}
