import { isTypo } from "./locks/near-names.ts";

/** Hosts that packages and tools usually come from. In the table a blank stands for each dot. */

const FORGES = ["github com", "gitlab com"];

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

export type KnownHosts = keyof typeof HOSTS;

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
export function imitatedBy(address: string): string | undefined {
  const host = /^[\w+]+:\/\/(?:[^/@\s]*@)?([^/:?#\s]+)/.exec(address)?.[1]?.toLowerCase() ?? "";
  if (host === "" || [...BY_KIND.values()].some((hosts) => hosts.has(host))) return undefined;
  const plain = host.replaceAll("-", ".");
  return REGISTRIES.find(
    (known) => plain.startsWith(`${known.replaceAll("-", ".")}.`) || plain === known || isTypo(host, known),
  );
}
