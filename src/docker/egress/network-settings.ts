import { createHash } from "node:crypto";
import { parse as parseToml } from "smol-toml";
import { CARGO_FILE, NETWORK_FOLDER } from "../../boxes/network-relay.ts";
import { type Fields, fieldsOf } from "../../core/raw-data.ts";
import type { Grant } from "../../core/network.ts";

/**
 * What the tools of a box are told so that they use its proxy: variables, settings in files, the user's mirrors, and the
 * authorities to trust.
 */

/** The address of the bridge in the box, which sandbox/runner/network.c opens. */
const HOST = "127.0.0.1";
const PORT = "3128";
const PROXY_URL = `http://${HOST}:${PORT}`;

/** Files in the folder of the proxy's socket, by their paths in the box. */
export const NETWORK_FILES = {
  /** PEM of the authorities that the host trusts, and of the proxy's own. */
  bundle: `${NETWORK_FOLDER}/ca.pem`,
  /** The same for Java. */
  trustStore: `${NETWORK_FOLDER}/ca.jks`,
  apt: `${NETWORK_FOLDER}/apt.conf`,
} as const;

const { bundle, trustStore, apt } = NETWORK_FILES;

type Variables = Readonly<Record<string, string>>;

/** Hosts that are reached without a proxy: the box's own servers. */
const NEAR = "localhost,127.0.0.1,::1";

/** Apache's client in Maven, of version 3 and of version 4, follows Java's settings only if it is told to. */
const JAVA = [
  `-Dhttp.proxyHost=${HOST} -Dhttp.proxyPort=${PORT} -Dhttps.proxyHost=${HOST} -Dhttps.proxyPort=${PORT}`,
  `-Djavax.net.ssl.trustStore=${trustStore} -Djavax.net.ssl.trustStoreType=JKS`,
  "-Daether.connector.http.useSystemProperties=true -Daether.transport.apache.useSystemProperties=true",
].join(" ");

/** The folder that Maven takes for its own `conf` if Java is told so; its log's settings are loaded from there too. */
const MAVEN_CONF = "maven";

/** Also makes Maven find the user's mirrors in place of its own settings. */
export const MAVEN_JAVA = `${JAVA} -Dmaven.conf=${NETWORK_FOLDER}/${MAVEN_CONF}`;

/** By the tool that reads them first; many more tools read most of the general ones. */
export const TOOL_VARIABLES = {
  general: {
    HTTP_PROXY: PROXY_URL,
    HTTPS_PROXY: PROXY_URL,
    ALL_PROXY: PROXY_URL,
    NO_PROXY: NEAR,
    http_proxy: PROXY_URL,
    https_proxy: PROXY_URL,
    all_proxy: PROXY_URL,
    no_proxy: NEAR,
    SSL_CERT_FILE: bundle,
  },
  curl: { CURL_CA_BUNDLE: bundle },
  node: { NODE_USE_ENV_PROXY: "1", NODE_EXTRA_CA_CERTS: bundle },
  npm: { npm_config_proxy: PROXY_URL, npm_config_https_proxy: PROXY_URL, npm_config_noproxy: NEAR },
  yarn: { YARN_HTTP_PROXY: PROXY_URL, YARN_HTTPS_PROXY: PROXY_URL, YARN_HTTPS_CA_FILE_PATH: bundle },
  pip: { PIP_PROXY: PROXY_URL, PIP_CERT: bundle, REQUESTS_CA_BUNDLE: bundle },
  cargo: { CARGO_HTTP_PROXY: PROXY_URL, CARGO_HTTP_CAINFO: bundle, CARGO_NET_GIT_FETCH_WITH_CLI: "true" },
  git: { GIT_SSL_CAINFO: bundle },
  java: { JAVA_TOOL_OPTIONS: JAVA },
  composer: { COMPOSER_CAFILE: bundle },
  bundler: { BUNDLE_SSL_CA_CERT: bundle },
  deno: { DENO_CERT: bundle },
  apt: { APT_CONFIG: apt },
} as const satisfies Readonly<Record<string, Variables>>;

/** How commands of a box find what they were granted. These are defaults: a command may set its own. */
export const networkVariables = (grants: readonly Pick<Grant, "host">[]): Variables =>
  Object.assign({}, ...Object.values(TOOL_VARIABLES), gitVariables(grants)) as Variables;

/** Settings in the form of git's environment, in which a key may occur more than once. */
function gitVariables(grants: readonly Pick<Grant, "host">[]): Variables {
  const settings = [["http.proxy", PROXY_URL] as const, ...sshRewrites(grants)];
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}

/** No ssh leaves the box: its addresses are read as https. `git@host:path` can only be rewritten for a host by name. */
const sshRewrites = (grants: readonly Pick<Grant, "host">[]): readonly (readonly [string, string])[] => [
  ["url.https://.insteadOf", "ssh://git@"],
  ["url.https://.insteadOf", "git+ssh://git@"],
  ["url.https://.insteadOf", "git://"],
  ...[...new Set(grants.map(({ host }) => host))]
    .filter((host) => !host.startsWith("*.") && !host.includes(":"))
    .map((host) => [`url.https://${host}/.insteadOf`, `git@${host}:`] as const),
];

/** For apt, which takes no certificate authority from the environment. */
export const aptSettings = (): string =>
  [
    `Acquire::http::Proxy "${PROXY_URL}";`,
    `Acquire::https::Proxy "${PROXY_URL}";`,
    `Acquire::https::CAInfo "${bundle}";`,
    "",
  ].join("\n");

/*
 * Where packages come from according to the user's settings of cargo and maven, for a box: these two take no mirror
 * from the environment. Names, addresses and replacements; no names of users, passwords, paths or programs.
 */

/** Settings for the box's own copy of a tool. */
interface BoxSettings {
  /** By their names in the folder of the box's network. */
  readonly files: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
}

export const NO_SETTINGS: BoxSettings = { files: {}, variables: {} };

/** Earlier texts take precedence, as cargo reads its files. */
export function cargoSettings(texts: readonly string[]): BoxSettings {
  const tables = texts.map(parsedToml).toReversed();
  const merged = (key: string): Fields =>
    Object.assign({}, ...tables.map((each) => fieldsOf(each[key]))) as Fields;
  const sources = sourcesIn(merged("source"));
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(merged("registries"))) {
    const index = plainUrl(fieldsOf(value)["index"]);
    if (index !== undefined && /^[\w-]{1,64}$/.test(name))
      variables[`CARGO_REGISTRIES_${name.toUpperCase().replaceAll("-", "_")}_INDEX`] = index;
  }
  const normal = merged("registry")["default"];
  if (typeof normal === "string" && /^[\w-]{1,64}$/.test(normal))
    variables["CARGO_REGISTRY_DEFAULT"] = normal;
  return { files: sources === "" ? {} : { [CARGO_FILE]: sources }, variables };
}

function parsedToml(text: string): Fields {
  try {
    return parseToml(text);
  } catch {
    return {};
  }
}

/** Sources with an address, and sources that such a source replaces, over any number of steps. */
function sourcesIn(sources: Fields): string {
  const kept = new Map<string, readonly string[]>();
  const lead = (name: string, visited: ReadonlySet<string>): boolean => {
    if (kept.has(name)) return true;
    const source = Object.hasOwn(sources, name) ? fieldsOf(sources[name]) : {};
    const next = source["replace-with"];
    const registry = plainUrl(source["registry"]);
    const replaced =
      typeof next === "string" && !visited.has(next) && lead(next, new Set([...visited, next]));
    if (!replaced && registry === undefined) return false;
    kept.set(name, [
      ...(registry === undefined ? [] : [`registry = ${JSON.stringify(registry)}`]),
      ...(replaced ? [`replace-with = ${JSON.stringify(next)}`] : []),
    ]);
    return true;
  };
  for (const name of Object.keys(sources)) lead(name, new Set([name]));
  return [...kept]
    .map(([name, lines]) => `[source.${JSON.stringify(name)}]\n${lines.join("\n")}\n`)
    .join("\n");
}

/** An https or http URL, in the forms that cargo accepts. */
function plainUrl(value: unknown): string | undefined {
  const [, prefix = "", text = ""] = /^((?:sparse|registry)\+)?(https?:\/\/\S+)$/.exec(String(value)) ?? [];
  const url = URL.parse(text);
  if (url === null) return undefined;
  url.username = "";
  url.password = "";
  return prefix + url.href;
}

/** As in Maven's own default settings: repositories without TLS are not used. */
const BLOCKER = `    <mirror>
      <id>no-plain-http</id>
      <mirrorOf>external:http:*</mirrorOf>
      <url>http://0.0.0.0/</url>
      <blocked>true</blocked>
    </mirror>`;

const LOGGING = `org.slf4j.simpleLogger.showDateTime=false
org.slf4j.simpleLogger.showThreadName=false
org.slf4j.simpleLogger.showLogName=false
org.slf4j.simpleLogger.logFile=System.out
org.slf4j.simpleLogger.cacheOutputStream=true
org.slf4j.simpleLogger.levelInBrackets=true
`;

/** The mirrors of these settings, those of the first text first; the texts have no comments or blocking mirrors. */
export function mavenSettings(texts: readonly string[], java: string): BoxSettings {
  const mirrors = texts
    .flatMap((text) => [...text.matchAll(/<mirror>([^]*?)<\/mirror>/g)])
    .flatMap(([, inner = ""]) => mirrorIn(inner) ?? []);
  if (mirrors.length === 0) return NO_SETTINGS;
  const text = `<settings>\n  <mirrors>\n${[...mirrors, BLOCKER].join("\n")}\n  </mirrors>\n</settings>\n`;
  return {
    files: {
      [`${MAVEN_CONF}/settings.xml`]: text,
      [`${MAVEN_CONF}/logging/simplelogger.properties`]: LOGGING,
    },
    variables: { JAVA_TOOL_OPTIONS: java },
  };
}

function mirrorIn(inner: string): string | undefined {
  const valueOf = (tag: string): string | undefined =>
    new RegExp(`<${tag}>\\s*([^<]{1,2000}?)\\s*</${tag}>`).exec(inner)?.[1];
  const [id = "mirror", of, address] = [valueOf("id"), valueOf("mirrorOf"), valueOf("url")];
  const url = plainUrl(address?.replaceAll("&amp;", "&"));
  if (of === undefined || url === undefined || !url.startsWith("http")) return undefined;
  const lines = [
    `<id>${id}</id>`,
    `<mirrorOf>${of}</mirrorOf>`,
    `<url>${url.replaceAll("&", "&amp;")}</url>`,
  ];
  return `    <mirror>\n${lines.map((line) => `      ${line}`).join("\n")}\n    </mirror>`;
}

/** Sun's format, which every Java reads; its password guards nothing, because trust stores hold no secrets. */
const MAGIC = 0xfe_ed_fe_ed;
const VERSION = 2;
const TRUSTED = 2;
const PASSWORD = "changeit";
/** The words that Sun hashes into the trailer. */
const WORDS = "Mighty Aphrodite";

/** The certificates of a PEM text as a Java key store. Anything in the text that is no certificate is left out. */
export function javaTrustStore(pem: string): Buffer {
  const certificates = certificatesIn(pem);
  const body = Buffer.concat([
    ...[MAGIC, VERSION, certificates.length].map(uint32),
    ...certificates.flatMap((der, index) => [
      uint32(TRUSTED),
      utf(`authority-${index}`),
      int64(Date.now()),
      utf("X.509"),
      uint32(der.length),
      der,
    ]),
  ]);
  const key = Buffer.from(PASSWORD, "utf16le").swap16();
  const seal = createHash("sha1").update(key).update(WORDS).update(body).digest();
  return Buffer.concat([body, seal]);
}

/** As DER, each once. A certificate that is cut off would make Java refuse the whole store. */
const certificatesIn = (pem: string): readonly Buffer[] =>
  [...new Set(pem.match(CERTIFICATE) ?? [])]
    .map((block) => Buffer.from(block.split("-----")[2] ?? "", "base64"))
    .filter(
      (der) => der.length > 4 && der.readUInt16BE(0) === 0x30_82 && der.readUInt16BE(2) === der.length - 4,
    );

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

/** With its length before it. ASCII only, so that Java's own form of UTF-8 is the same. */
function utf(value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value, "latin1")]);
}
