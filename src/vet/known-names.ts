/** Hosts and packages that are widely known, and names that are taken for theirs. */
import type { Ecosystem } from "./manifests.ts";
import { POPULAR } from "./popular-names.generated.ts";

const FORGES = ["github com", "gitlab com"];

/** Hosts that packages and tools usually come from. A blank stands for each dot. */
const HOSTS = {
  /** Registries of npm's packages; `npm locks` are the other hosts that its lock files name. */
  npm: [
    "registry npmjs org",
    "registry yarnpkg com",
    "registry npmmirror com",
    "npm pkg github com",
    "npm jsr io",
  ],
  "npm locks": [...FORGES, "codeload github com", "bitbucket org"],
  pip: [
    "pypi org",
    "test pypi org",
    "files pythonhosted org",
    "pypi python org",
    "download pytorch org",
    "pypi nvidia com",
  ],
  "pip locks": [...FORGES, "download-r2 pytorch org"],
  cargo: ["index crates io"],
  "cargo locks": [...FORGES, "gitlab freedesktop org"],
  composer: ["packagist org", "repo packagist org", "wpackagist org", "packages drupal org", "github com"],
  "composer locks": [
    ...FORGES,
    "api github com",
    "codeload github com",
    "bitbucket org",
    "ftp drupal org",
    "git drupalcode org",
    "downloads wordpress org",
  ],
  gem: ["rubygems org"],
  "gem locks": FORGES,
  go: [],
  "go locks": [],
  maven: [
    "repo maven apache org",
    "repo1 maven org",
    "plugins gradle org",
    "maven google com",
    "oss sonatype org",
    "repo spring io",
  ],
  "maven locks": [],
  /** Hosts of the wrappers that fetch a build tool. */
  wrappers: [
    "services gradle org",
    "downloads gradle org",
    "repo maven apache org",
    "repo1 maven org",
    "archive apache org",
    "dlcdn apache org",
  ],
  "yarn plugins": ["mskelton dev", "repo yarnpkg com"],
  /** Hosts of the makers of tools that builds fetch and run. */
  tools: [
    "raw githubusercontent com",
    "github com",
    "gitlab com",
    "sh rustup rs",
    "static rust-lang org",
    "get docker com",
    "bun sh",
    "deno land",
    "codecov io",
    "uploader codecov io",
    "cli codecov io",
    "install python-poetry org",
    "bootstrap pypa io",
    "astral sh",
    "get pnpm io",
    "deb nodesource com",
    "rpm nodesource com",
    "get helm sh",
    "install goreleaser com",
    "git io",
    "goreleaser com",
    "taskfile dev",
    "just systems",
    "get sdkman io",
    "apt llvm org",
    "nixos org",
    "install determinate systems",
    "mise run",
    "mise jdx dev",
    "fnm vercel app",
    "get volta sh",
    "www npmjs com",
    "npmjs org",
    "yarnpkg com",
    "getcomposer org",
    "get k3s io",
    "packagecloud io",
    "rustwasm github io",
    "wasmtime dev",
    "get wasmer io",
    "get trunk io",
    "get pulumi com",
    "coveralls io",
    "deepsource io",
    "qlty sh",
    "coverage codacy com",
    "codeclimate com",
    "get-ghcup haskell org",
    "get haskellstack org",
    "opam ocaml org",
    "go dev",
    "golang org",
    "ziglang org",
    "foundry paradigm xyz",
    "fly io",
    "storage googleapis com",
    "dl google com",
    "aka ms",
    "install duckdb org",
    "get opentofu org",
    "ollama com",
    "community chocolatey org",
    "chocolatey org",
    "get scoop sh",
    "dot net",
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

type KnownHosts = keyof typeof HOSTS;

const BY_KIND: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(HOSTS).map(([kind, hosts]) => [
    kind,
    new Set(hosts.map((each: string) => each.replaceAll(" ", "."))),
  ]),
);

/** The hosts as alternatives of a regular expression. */
export const anyOfHosts = (kind: KnownHosts): string =>
  [...(BY_KIND.get(kind) ?? [])].map((host) => host.replaceAll(".", "\\.")).join("|");

export const isKnownHost = (host: string, ...kinds: readonly KnownHosts[]): boolean =>
  kinds.some((kind) => BY_KIND.get(kind)?.has(host.toLowerCase()) === true);

/** Whether the address is on one of these hosts, with encryption. */
export function isKnownAddress(address: string, ...kinds: readonly KnownHosts[]): boolean {
  const host = /^(?:sparse\+)?https:\/\/([^/:?#\s]+)(?=[/?#]|$)/i.exec(address)?.[1];
  return host !== undefined && isKnownHost(host, ...kinds);
}

const REGISTRIES = (["npm", "pip", "cargo", "composer", "gem", "maven"] as const).flatMap((kind) => [
  ...(BY_KIND.get(kind) ?? []),
]);

/**
 * The registry that an address only looks like: the registry's host with more after it, with other separators, or with
 * one letter changed.
 */
export function imitatedRegistry(address: string): string | undefined {
  const host = /^[\w+]+:\/\/(?:[^/@\s]*@)?([^/:?#\s]+)/.exec(address)?.[1]?.toLowerCase() ?? "";
  if (host === "" || [...BY_KIND.values()].some((hosts) => hosts.has(host))) return undefined;
  const plain = host.replaceAll("-", ".");
  return REGISTRIES.find(
    (known) => plain.startsWith(`${known.replaceAll("-", ".")}.`) || plain === known || isTypo(host, known),
  );
}

/** Names that are taken for those of widely used packages: by a letter, a separator, a scope, or a letter of another script. */

/** Digits and letters that look alike. */
const DIGITS = /^(?:0o|o0|1[li]|[li]1|5s|s5|3e|e3|4a|a4)$/;
/** The plural of a shorter name is a name of its own. */
const LONG_NAME = 10;
/** Shorter names are near to each other by chance. */
const MIN_LENGTH = 5;

interface Table {
  readonly names: ReadonlySet<string>;
  /** A name without one of its letters → the full names. */
  readonly shorter: ReadonlyMap<string, readonly string[]>;
  /** Without separators and scope → the name. */
  readonly bare: ReadonlyMap<string, string>;
}

/** Makes each table on first use: most trees have names of one ecosystem. */
class Tables {
  readonly #made = new Map<Ecosystem, Table>();

  of(ecosystem: Ecosystem): Table | undefined {
    const names = POPULAR[ecosystem];
    if (names === undefined) return undefined;
    const table = this.#made.get(ecosystem) ?? tableOf(names.map((name) => canonicalName(name, ecosystem)));
    this.#made.set(ecosystem, table);
    return table;
  }
}

const tables = new Tables();

function tableOf(names: readonly string[]): Table {
  const shorter = new Map<string, string[]>();
  for (const name of names) {
    if (name.length < MIN_LENGTH) continue;
    for (const each of shortened(name)) shorter.set(each, [...(shorter.get(each) ?? []), name]);
  }
  const long = names.filter((name) => bareOf(name).length >= MIN_LENGTH + 1);
  return { names: new Set(names), shorter, bare: new Map(long.map((name) => [bareOf(name), name])) };
}

function shortened(name: string): readonly string[] {
  return [...new Set(Array.from(name, (_, at) => name.slice(0, at) + name.slice(at + 1)))];
}

function bareOf(name: string): string {
  return name.replace(/[-_.@/]/g, "");
}

/** A name in the form in which its registry compares names. */
function canonicalName(name: string, ecosystem: Ecosystem): string {
  const lower = name.toLowerCase();
  return ecosystem === "pip"
    ? lower.replace(/[-_.]+/g, "-")
    : ecosystem === "cargo"
      ? lower.replaceAll("_", "-")
      : lower;
}

/** Whether a name has letters other than ASCII's, which may look like these. */
export const hasLookAlike = (name: string): boolean => /[^\x20-\x7e]/.test(name);

/** The widely used package that a name is near to; undefined where it is one itself, or near to none. */
export function nearName(written: string, ecosystem: Ecosystem): string | undefined {
  const table = tables.of(ecosystem);
  const name = canonicalName(written, ecosystem);
  if (table === undefined || table.names.has(name)) return undefined;
  // Names of one owner are near to each other, and nobody else can have them.
  if (ecosystem === "npm" && name.startsWith("@")) return nearScope(name, table);
  const bare = table.bare.get(bareOf(name));
  if (bare !== undefined && !isFamily(name, bare)) return bare;
  if (name.length < MIN_LENGTH - 1 || name.length > 100) return undefined;
  const grown = shortened(name);
  const near = [
    ...(table.shorter.get(name) ?? []),
    ...grown.filter((each) => each.length >= MIN_LENGTH && table.names.has(each)),
    ...grown.flatMap((each) => table.shorter.get(each) ?? []),
  ];
  return near.find((popular) => isTypo(name, popular));
}

/** `babel-core` is the old name of `@babel/core`, whereas `types-node` is another name than `@types/node`. */
const isFamily = (name: string, popular: string): boolean =>
  popular.startsWith("@babel/") && name.startsWith("babel-");

/** Compares scopes, the letters before the slash: `@typse/node`. */
function nearScope(name: string, table: Table): string | undefined {
  const [scope = "", rest = ""] = name.split("/");
  for (const popular of table.names) {
    if (!popular.startsWith("@")) continue;
    const [known = "", other = ""] = popular.split("/");
    if (known.length >= MIN_LENGTH && known !== scope && rest === other && isTypo(scope, known))
      return popular;
  }
  return undefined;
}

/**
 * One letter more, less or changed, or two swapped; differing numbers and plurals do not count, as they tell packages
 * apart.
 */
function isTypo(name: string, popular: string): boolean {
  const [longer, shorter] = name.length >= popular.length ? [name, popular] : [popular, name];
  const start = commonPrefixLength(longer, shorter, (text, at) => text[at]);
  const end = commonPrefixLength(longer.slice(start), shorter.slice(start), (text, at) => text.at(-1 - at));
  const [more, less] = [longer.slice(start, longer.length - end), shorter.slice(start, shorter.length - end)];
  if (/\d/.test(more + less)) return DIGITS.test(more + less);
  if (less.length === 0)
    return more.length === 1 && !(isPlural(more, end, shorter) && popular.length < LONG_NAME);
  if (more.length === 1) return popular.length > MIN_LENGTH;
  return more.length === 2 && more[0] === less[1] && more[1] === less[0];
}

/** How many letters in a row are the same. */
function commonPrefixLength(
  a: string,
  b: string,
  letter: (text: string, at: number) => string | undefined,
): number {
  let at = 0;
  while (at < b.length && letter(a, at) === letter(b, at)) at += 1;
  return at;
}

const isPlural = (more: string, end: number, shorter: string): boolean =>
  end === 0 && more === "s" && !shorter.endsWith("s");
