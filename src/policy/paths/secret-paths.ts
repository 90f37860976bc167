import { endOfName, type Rows } from "./system-paths.ts";

interface Row {
  readonly why: string;
  /** The names before the last one, each with its slash; empty for most rows. */
  readonly before: string;
  readonly folder: boolean;
}

/**
 * What often holds a password or a key, wherever it stands: why → rows, folded. A row is the end of a path; one that
 * ends in `/` is a folder with all below it; `*` at one end of a single name stands for any text.
 */
export const SECRETS: Rows = {
  "an environment file: passwords and keys of the project": [
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".flaskenv",
  ],
  "a private key": [
    "*.pem",
    "*.key",
    "*.ppk",
    "*.p8",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "ssh_host_*",
  ],
  "a store of keys or passwords": [
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.kdb",
    "*.keytab",
    "*.agekey",
    ".password-store/",
    ".local/share/keyrings/",
    "library/keychains/",
    ".config/op/",
    ".vault-token",
    ".vault_pass",
  ],
  "keys and settings of ssh": [".ssh/"],
  "keys of gnupg": [".gnupg/", "secring.gpg"],
  "credentials of a cloud": [
    ".aws/",
    ".azure/",
    ".oci/",
    ".config/gcloud/",
    ".config/doctl/",
    ".config/rclone/",
    ".boto",
    ".s3cfg",
    "application_default_credentials.json",
    "client_secret.json",
    "service-account.json",
    "service_account.json",
  ],
  "credentials of a cluster or an engine": [
    ".kube/",
    "kubeconfig",
    ".docker/config.json",
    ".dockercfg",
    ".config/containers/auth.json",
    "containers/auth.json",
    "run/secrets/",
  ],
  "passwords of hosts": [
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/hub",
    ".config/gh/hosts.yml",
    ".config/glab-cli/",
  ],
  "tokens of a package registry": [
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget/nuget/nuget.config",
  ],
  credentials: [
    "credentials.json",
    "credentials.yml",
    "credentials.yaml",
    "credentials.xml",
    "master.key",
    "secrets.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.toml",
    ".secrets",
    ".secrets/",
    ".htpasswd",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".config/harness/",
  ],
  "state of an infrastructure, passwords included": [
    "*.tfstate",
    "*.tfstate.backup",
    "*.tfvars",
    ".terraformrc",
    ".terraform.d/",
  ],
  "passwords of databases": [".pgpass", ".my.cnf", ".mylogin.cnf", ".mongorc.js"],
  "the setting of a private network": ["*.ovpn", "etc/wireguard/", "etc/networkmanager/system-connections/"],
  "passwords and keys of the system": [
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
    "etc/sudoers",
    "etc/sudoers.d/",
    "etc/master.passwd",
    "etc/security/opasswd",
    "etc/ssl/private/",
    "etc/pki/tls/private/",
    "etc/letsencrypt/",
  ],
  "what was typed, passwords included": [
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".sh_history",
    ".history",
    "fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".rediscli_history",
    ".sqlite_history",
    ".lesshst",
    ".viminfo",
  ],
  "cookies and passwords of a browser or mail program": [
    ".mozilla/",
    ".thunderbird/",
    ".config/google-chrome/",
    ".config/chromium/",
    ".config/bravesoftware/",
    ".config/microsoft-edge/",
    ".config/vivaldi/",
    ".config/opera/",
    "snap/firefox/",
    "library/application support/google/chrome/",
    "library/application support/firefox/",
    "library/cookies/",
  ],
};

const ALL = Object.entries(SECRETS).flatMap(([why, paths]) => paths.map((path) => ({ why, path })));

const BY_NAME: ReadonlyMap<string, readonly Row[]> = Map.groupBy(
  ALL.filter(({ path }) => !path.includes("*")).map(({ why, path }) => {
    const folder = path.endsWith("/");
    const whole = folder ? path.slice(0, -1) : path;
    const start = whole.lastIndexOf("/") + 1;
    return { why, folder, name: whole.slice(start), before: whole.slice(0, start) };
  }),
  ({ name }) => name,
);

const STARTS = ALL.filter(({ path }) => path.endsWith("*")).map(({ path, why }) => ({
  start: path.slice(0, -1),
  why,
}));

/** By the ending with its dot. */
const ENDS: ReadonlyMap<string, string> = new Map(
  ALL.filter(({ path }) => path.startsWith("*")).map(({ path, why }) => [path.slice(1), why]),
);

const MAX_LENGTH = Math.max(...[...ENDS.keys()].map((end) => end.length));

/** Why a read there may show a password or a key. The path is absolute, resolved and folded. */
export function secretAt(folded: string): string | null {
  const name = folded.slice(folded.lastIndexOf("/") + 1);
  return isHarmless(name) ? null : (bySpelling(name) ?? byTable(folded));
}

/** By whole names only: in folders of the system a certificate or a test's key is nobody's secret. */
export const namedSecretAt = (folded: string): string | null => byTable(folded);

const EXAMPLES = [".example", ".sample", ".template", ".dist"];

/** Names that say that they hold none: public keys, and examples of environment files. */
const isHarmless = (name: string): boolean =>
  name.endsWith(".pub") || (name.startsWith(".env.") && EXAMPLES.some((end) => name.endsWith(end)));

function bySpelling(name: string): string | null {
  for (let dot = name.indexOf(".", name.length - MAX_LENGTH); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const why = ENDS.get(name.slice(dot));
    if (why !== undefined) return why;
  }
  return STARTS.find(({ start }) => name.startsWith(start))?.why ?? null;
}

function byTable(folded: string): string | null {
  for (let start = 1; start <= folded.length;) {
    const end = endOfName(folded, start);
    const rows = BY_NAME.get(folded.slice(start, end));
    const row = rows?.find((each) => (each.folder || end === folded.length) && follows(folded, start, each));
    if (row !== undefined) return row.why;
    start = end + 1;
  }
  return null;
}

const follows = (folded: string, start: number, { before }: Row): boolean =>
  before === "" || folded.slice(0, start).endsWith(`/${before}`);
