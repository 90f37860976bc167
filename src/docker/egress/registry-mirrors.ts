import { parse as parseToml } from "smol-toml";
import { CARGO_FILE } from "../../boxes/network-relay.ts";
import { type Fields, fieldsOf } from "../../core/text/json-values.ts";

/*
 * Where packages come from according to the user's settings of cargo and maven, for a box: these two take no mirror
 * from the environment. Names, addresses and replacements; no names of users, passwords, paths or programs.
 */

/** Settings for the box's own copy of a tool. */
export interface BoxSettings {
  /** By their names in the folder of the box's network. */
  readonly files: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
}

export const NO_SETTINGS: BoxSettings = { files: {}, variables: {} };

/** The folder that Maven takes for its own `conf` if Java is told so; its log's settings are loaded from there too. */
export const MAVEN_CONF = "maven";

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
