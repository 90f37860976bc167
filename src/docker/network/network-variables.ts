import type { Grant } from "../../core/network.ts";
import { NETWORK_FOLDER } from "../../boxes/network-relay.ts";
import { MAVEN_CONF } from "../egress/registry-mirrors.ts";

/** The address of the bridge in the box, which sandbox/runner/network.c opens. */
const [HOST, PORT] = ["127.0.0.1", "3128"];
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
  const settings = [["http.proxy", PROXY_URL] as const, ...insteadOf(grants)];
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}

/** No ssh leaves the box: its addresses are read as https. `git@host:path` can only be rewritten for a host by name. */
const insteadOf = (grants: readonly Pick<Grant, "host">[]): readonly (readonly [string, string])[] => [
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
