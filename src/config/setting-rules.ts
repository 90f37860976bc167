/**
 * The values that each setting accepts, and the check of one source of settings. Unknown keys are errors everywhere.
 */
import * as z from "zod";
import { badResultsPlace, ENGINE_FORM, readEngineAddress } from "../core/addresses.ts";
import {
  truncate,
  DURATION_FORM,
  nearest,
  parseDuration,
  parseSize,
  SIZE_FORM,
  writtenSize,
} from "../core/wording.ts";
import { MODES } from "../core/decision.ts";
import { HOOK_KEYS, hooksForm, TOOL_KEYS, toolsForm } from "../core/added-programs.ts";
import { grantText, isPreset, readGrant, splitGrants } from "../core/network.ts";
import { CALL_FORMS } from "../core/model-provider.ts";
import { MCP_KEYS, mcpServers } from "./mcp-settings.ts";
import {
  ALIASES,
  configError,
  ISOLATIONS,
  NOTIFY,
  ON_ASK,
  PROVIDERS,
  SEARCH_SERVICES,
  STORES,
} from "./setting-words.ts";

const MINUTE_MS = 60_000;
const MiB = 2 ** 20;
const TiB = 2 ** 40;

function inLongestUnit(ms: number): string {
  for (const [unit, length] of [
    ["h", 60 * MINUTE_MS],
    ["m", MINUTE_MS],
  ] as const)
    if (ms > 0 && ms % length === 0) return `${ms / length}${unit}`;
  return `${ms / 1000}s`;
}

interface Quantity {
  readonly form: string;
  readonly parse: (text: string) => number | undefined;
  readonly write: (value: number) => string;
}

const quantity = ({ form, parse, write }: Quantity, minimum: number, maximum: number) =>
  z.union([z.string(), z.number()], `expected ${form}`).transform((value, context) => {
    const read = parse(String(value));
    if (read !== undefined && read >= minimum && read <= maximum) return read;
    const expected = `expected ${form}, from ${write(minimum)} to ${write(maximum)}`;
    context.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  });

const duration = (minimum: number, maximum: number) =>
  quantity({ form: DURATION_FORM, parse: parseDuration, write: inLongestUnit }, minimum, maximum);

const size = (minimum: number, maximum: number) =>
  quantity({ form: SIZE_FORM, parse: parseSize, write: writtenSize }, minimum, maximum);

const wholeNumber = (minimum: number, maximum: number) =>
  z
    .number(`expected a whole number from ${minimum} to ${maximum}`)
    .refine(
      (value) => Number.isSafeInteger(value) && value >= minimum && value <= maximum,
      `expected a whole number from ${minimum} to ${maximum}`,
    );

const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `expected one of ${values.join(", ")}`);
const yesNo = z.boolean("expected true or false");
const processors = z
  .number("expected a number of processors from 0.1 to 1024")
  .min(0.1, "expected a number of processors from 0.1 to 1024")
  .max(1024, "expected a number of processors from 0.1 to 1024");
const anyText = z
  .string("expected text")
  .min(1, "expected text that is not empty")
  .max(500, "expected at most 500 characters");
const name = anyText.refine((text) => text.trim() !== "", "expected text that is not empty");
/** As engines accept it: [host[:port]/]name[:tag][@digest]. It becomes part of a request's path. */
const imageName = anyText.regex(
  /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d+)?\/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,128})?$/,
  "expected an image's name such as debian:bookworm or registry.example:5000/team/box",
);
/** Kept as written: it is interpreted when the engine is contacted. */
const engine = z.string(`expected ${ENGINE_FORM}`).superRefine((text, context) => {
  const read = readEngineAddress(text);
  if (read.kind === "wrong")
    context.addIssue({ code: "custom", message: `expected ${ENGINE_FORM}: ${read.message}` });
});
const TEMPERATURE = "expected a temperature from 0 to 2";
const price = z.number("expected a price per million tokens").min(0, "expected a price of 0 or more");
const webUrl = z.url({ protocol: /^https?$/, error: "expected an http:// or https:// address" });
const GRANT_LIST = "expected a list of host names";

/** An entry as people write it: a grant's text form, or the name of a preset. One text may contain several. */
const grantEntry = z
  .union([z.string(), z.looseObject({})], "expected a host name")
  .transform((value, context) => {
    const texts = typeof value === "string" ? splitGrants(value) : [objectGrant(value, context)];
    if (texts.length === 0) context.addIssue({ code: "custom", message: `expected ${GRANT_FORM}` });
    return texts.flatMap((text) => {
      if (text === undefined) return [];
      if (isPreset(text)) return [text];
      const read = readGrant(text);
      if (read.kind === "grant") return [grantText(read.grant)];
      context.addIssue({ code: "custom", message: `expected ${GRANT_FORM}: ${read.message}` });
      return [];
    });
  });
const GRANT_FORM = "a host name such as example.org or *.example.org";

const grantObject = z.strictObject({
  host: z.string("expected a host name"),
  ports: z.array(z.int("expected a port"), "expected a list of ports").optional(),
  methods: z.array(z.string("expected a method"), "expected a list of methods").optional(),
  private: yesNo.optional(),
});

function objectGrant(value: unknown, context: z.RefinementCtx): string | undefined {
  const read = grantObject.safeParse(value);
  if (!read.success) {
    context.addIssue({ code: "custom", message: read.error.issues[0]?.message ?? `expected ${GRANT_FORM}` });
    return undefined;
  }
  const { host, ports = [], methods = [], private: own = false } = read.data;
  const parts = [ports.join(","), methods.length === 0 ? "" : methods.join(","), own ? "private" : ""].filter(
    (part) => part !== "",
  );
  return [host, ...parts].join(":");
}

const grants = z.array(grantEntry, GRANT_LIST).transform((lists) => [...new Set(lists.flat())]);

const packageName = z
  .string("expected a package's name")
  .regex(
    /^(?:@[a-z0-9][\w.-]{0,100}\/)?[a-z0-9][\w.-]{0,100}$/i,
    "expected a package's name such as esbuild",
  );

const SECRET_NAME = /^[A-Za-z_]\w{0,99}$/;
const SECRETS = "expected variable names, each with its list of hosts";

/** `NAME@HOST,HOST`; without hosts, those that the settings name for it. */
function secretFlag(
  text: string,
  context: z.RefinementCtx,
): readonly (readonly [string, readonly string[]])[] {
  const [name = "", hosts = "", ...more] = text.split("@");
  if (SECRET_NAME.test(name) && more.length === 0 && (hosts !== "" || !text.includes("@")))
    return [[name, hosts.split(",").filter((host) => host !== "")]];
  context.addIssue({ code: "custom", message: "expected NAME@HOST, such as API_TOKEN@api.example.org" });
  return [];
}

const hostName = z.string("expected a host name").transform((text, context) => {
  const read = readGrant(text);
  if (read.kind === "grant" && grantText(read.grant) === read.grant.host && !isPreset(read.grant.origin))
    return read.grant.host;
  const message = read.kind === "wrong" ? read.message : "give only the name, without ports or methods";
  context.addIssue({ code: "custom", message: `expected ${GRANT_FORM}: ${message}` });
  return z.NEVER;
});
const secretTable = z.record(
  z.string().regex(SECRET_NAME, "expected a variable's name such as API_TOKEN"),
  z.array(hostName, GRANT_LIST),
  SECRETS,
);
const secrets = z.union(
  [
    secretTable,
    z
      .array(z.string(), SECRETS)
      .transform((texts, context) => Object.fromEntries(texts.flatMap((text) => secretFlag(text, context))))
      .pipe(secretTable),
  ],
  SECRETS,
);

const priceRow = z.strictObject({
  model: name,
  input: price,
  output: price,
  cached: price.exactOptional(),
  from: z.iso.date("expected the first day of the price, such as 2026-03-01").exactOptional(),
});

const webSearch = z
  .strictObject({ provider: oneOf(SEARCH_SERVICES), url: webUrl.optional() })
  .refine(({ provider, url }) => provider !== "searxng" || url !== undefined, {
    path: ["url"],
    message: "expected the address of your SearXNG",
  });
/** Everything is off unless it is set. */
const web = z.strictObject({ fetch: yesNo.default(false), search: webSearch.nullable().default(null) });

/** A name as the API accepts it, of an object or a part of one. */
const objectName = z
  .string("expected text")
  .max(253, "expected at most 253 characters")
  .regex(
    /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
    "expected a name of lower-case letters, digits, dots and dashes",
  );

const labelKey = z
  .string()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/,
    "expected the name of a label, such as kubernetes.io/arch",
  );
const labelValue = z
  .string("expected the value of a label")
  .regex(/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/, "expected the value of a label");

const SECCOMP =
  "expected RuntimeDefault, or Localhost/PATH of a profile in the kubelet's seccomp folder on every node";
const seccomp = z
  .string(SECCOMP)
  .regex(/^(?:RuntimeDefault|Localhost\/(?!.*\.\.)\w[\w./-]{0,200})$/, SECCOMP);

const PROBE = "expected an address in the cluster, such as 10.0.0.1:443";
const probe = z.string(PROBE).regex(/^[0-9a-zA-Z][0-9a-zA-Z.-]{0,252}:\d{1,5}$/, PROBE);

const REGISTRY = "expected a repository in a registry, such as registry.example/team/harness-env";
const registry = z
  .string(REGISTRY)
  .max(255, REGISTRY)
  .regex(
    /^(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9-]+(?=:))(?::\d{1,5})?(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)+$/,
    REGISTRY,
  );

const resultsBucket = z.string("expected s3://BUCKET/PREFIX").superRefine((text, context) => {
  const why = badResultsPlace(text);
  if (why !== undefined) context.addIssue({ code: "custom", message: why });
});

/** Boxes and batches in a cluster. All keys may be left out; null: none, or the cluster's own default. */
const kubernetes = z.strictObject({
  /** Must contain the runner of the same version, and come from a registry that the nodes reach. */
  image: imageName.nullable().default(null),
  /** Where `env build` pushes environments, and where pods pull them from. */
  registry: registry.nullable().default(null),
  pull_policy: oneOf(["IfNotPresent", "Always", "Never"]).default("IfNotPresent"),
  pull_secret: objectName.nullable().default(null),
  runtime_class: objectName.nullable().default(null),
  seccomp: seccomp.default("RuntimeDefault"),
  node_selector: z.record(labelKey, labelValue, "expected names and values of labels").default({}),
  /** Whether the controller of a Sandbox (agents.x-k8s.io) makes the pods. */
  sandbox_resource: oneOf(["auto", "never", "always"]).default("auto"),
  /** A SandboxWarmPool of agent-sandbox; its pods become boxes if they fit. */
  warm_pool: objectName.nullable().default(null),
  /** The cluster ends a box at this time, whatever has become of its harness. */
  deadline: duration(MINUTE_MS, 7 * 24 * 60 * MINUTE_MS).default(8 * 60 * MINUTE_MS),
  /** For scheduling, pulling and starting together. */
  start_timeout: duration(MINUTE_MS / 12, 60 * MINUTE_MS).default(5 * MINUTE_MS),
  /** The part of that time spent waiting for a node with room. */
  schedule_timeout: duration(1000, 60 * MINUTE_MS).default(2 * MINUTE_MS),
  /** An address that pods in the cluster can reach if they are allowed to, used to show that boxes cannot. */
  probe: probe.nullable().default(null),
  /** For a batch in the cluster: the image of the loop, and a volume claim or a bucket for results and sessions. */
  loop_image: imageName.nullable().default(null),
  results_claim: objectName.nullable().default(null),
  results_bucket: resultsBucket.nullable().default(null),
  /** A Secret whose values become variables of the loop: the address of the model server, and keys. */
  model_secret: objectName.nullable().default(null),
  /** A queue of Kueue. */
  queue: objectName.nullable().default(null),
  service_account: objectName.nullable().default(null),
  /** Most disk space that the copy of the workspace may take on its node. */
  disk: size(64 * MiB, 2 ** 40).default(4096 * MiB),
});

const capabilityRow = z.strictObject({
  prefix: name,
  context: wholeNumber(512, 100_000_000).optional(),
  tools: yesNo.optional(),
  thinking: yesNo.optional(),
  calls: oneOf(CALL_FORMS).optional(),
  parameters: wholeNumber(10_000_000, 100_000_000_000_000).optional(),
});

/** Blanks and comments always succeed, and prove nothing. */
const isCommand = (text: string): boolean => text.split("\n").some((line) => !/^\s*(?:#|$)/.test(line));

/** One rule for each key. Null, where it is allowed, means that the value is decided at run time. */
const RULES = {
  provider: oneOf(PROVIDERS),
  base_url: webUrl.nullable(),
  chat_model: name,
  embed_model: name,
  max_context_tokens: wholeNumber(2048, 100_000_000).nullable(),
  stream: yesNo,
  plain: yesNo,
  notify: oneOf(NOTIFY),
  mode: oneOf(MODES),
  on_ask: oneOf(ON_ASK),
  park_timeout: duration(0, 30 * 24 * 60 * MINUTE_MS),
  engine: engine.nullable(),
  isolation: oneOf(ISOLATIONS),
  image: imageName.nullable(),
  env: name.nullable(),
  canaries: yesNo,
  history: yesNo,
  memory: size(64 * MiB, 4 * TiB),
  cpus: processors.nullable(),
  pids: wholeNumber(16, 4_000_000),
  timeout: duration(1000, 24 * 60 * MINUTE_MS),
  connect_timeout: duration(1000, 10 * MINUTE_MS),
  first_token_timeout: duration(1000, 120 * MINUTE_MS),
  idle_timeout: duration(1000, 120 * MINUTE_MS),
  max_turns: wholeNumber(1, 10_000),
  check: name.refine(isCommand, "expected a command").nullable(),
  attempts: wholeNumber(1, 16),
  temperature: z.number(TEMPERATURE).min(0, TEMPERATURE).max(2, TEMPERATURE).nullable(),
  allow_domains: grants,
  deny_domains: z.array(hostName, GRANT_LIST).transform((names) => [...new Set(names)]),
  network_upload: size(MiB, 4 * TiB),
  network_download: size(MiB, 4 * TiB),
  network_idle_timeout: duration(1000, 60 * MINUTE_MS),
  secrets,
  install_scripts: z.array(packageName, "expected a list of package names"),
  min_release_age: duration(0, 366 * 24 * 60 * MINUTE_MS),
  hooks: hooksForm,
  tools: toolsForm,
  search: z
    .strictObject({
      store: oneOf(STORES),
      url: webUrl,
      nodes: z.array(webUrl, "expected a list of addresses").max(16, "expected at most 16 addresses"),
      shard_number: wholeNumber(1, 1024).nullable(),
      replication_factor: wholeNumber(1, 64).nullable(),
      write_consistency_factor: wholeNumber(1, 64).nullable(),
    })
    .partial(),
  web,
  kubernetes,
  mcp: mcpServers,
  prices: z.array(priceRow, "expected a list of prices"),
  capabilities: z.array(capabilityRow, "expected a list of capabilities"),
};

/** One source of settings: any of these keys, and no others. */
export const layerSchema = z.strictObject(RULES).partial();
export type SettingsLayer = z.infer<typeof layerSchema>;

/** The keys inside settings that have keys of their own. */
const ROW_KEYS: Readonly<Record<string, readonly string[]>> = {
  search: Object.keys(RULES.search.shape),
  web: Object.keys(web.shape),
  kubernetes: Object.keys(kubernetes.shape),
  mcp: MCP_KEYS,
  hooks: HOOK_KEYS,
  tools: TOOL_KEYS,
  prices: Object.keys(priceRow.shape),
  capabilities: Object.keys(capabilityRow.shape),
};

const KEYS = Object.keys(RULES);

/** Checks one source of settings as a whole; `at` returns the position of a key in it. */
export function readLayer(value: unknown, at: (keys: readonly PropertyKey[]) => string): SettingsLayer {
  const parsed = layerSchema.safeParse(withoutAliases(value, at));
  if (!parsed.success) throw firstIssue(parsed.error, value, at);
  const odd = unreadKey(value);
  if (odd === undefined) return parsed.data;
  throw configError(at(odd), `${odd.join(".")}: ${UNREAD} cannot be used as a name`);
}

/** The schema's tables skip this key without an error, so that what it holds would count as set and never be used. */
const UNREAD = "__proto__";

/** The path of such a key; undefined if there is none. A value that fits the schema is only a few levels deep. */
function unreadKey(value: unknown): readonly string[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Object.hasOwn(value, UNREAD)) return [UNREAD];
  for (const [key, entry] of Object.entries(value)) {
    const below = unreadKey(entry);
    if (below !== undefined) return [key, ...below];
  }
  return undefined;
}

function withoutAliases(value: unknown, at: (keys: readonly PropertyKey[]) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  const plain: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value)) {
    const real = Object.hasOwn(ALIASES, key) ? ALIASES[key] : undefined;
    if (real !== undefined && Object.hasOwn(value, real))
      throw configError(at([key]), `${key}: is an alias of ${real}, which is also set`);
    Object.defineProperty(plain, real ?? key, { value: entry, enumerable: true });
  }
  return plain;
}

/** A position that is a flag or variable already contains the name that was typed. */
const SAYS_ITS_NAME = /^(?:--|HARNESS_)/;

function firstIssue(error: z.ZodError, value: unknown, at: (keys: readonly PropertyKey[]) => string): Error {
  const [issue] = error.issues;
  if (issue === undefined) return configError(at([]), "is not valid");
  const path = asWritten(issue.path, value);
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const dotted = [...path, key].map(String).join(".");
    return configError(at([...path, key]), `${dotted}: unknown key; ${hintFor(key, path[0])}`);
  }
  const found = show(valueAt(value, path));
  const where = at(path);
  const name = SAYS_ITS_NAME.test(where) ? "" : `${path.map(String).join(".")}: `;
  const expected = issue.message.startsWith(ZOD_OBJECT) ? "expected an object" : issue.message;
  return configError(where, `${name}${expected}, found ${found}`);
}

/** The start of zod's own message, which goes on with what it found; we show that as it was written. */
const ZOD_OBJECT = "Invalid input: expected object";

/** The path with the name that this source uses for its first key. */
function asWritten(path: readonly PropertyKey[], value: unknown): readonly PropertyKey[] {
  const [head, ...rest] = path;
  const alias = Object.keys(ALIASES).find((other) => ALIASES[other] === head);
  return alias !== undefined && valueAt(value, [alias]) !== undefined ? [alias, ...rest] : path;
}

const valueAt = (value: unknown, keys: readonly PropertyKey[]): unknown =>
  keys.reduce<unknown>((inner, key) => {
    if (typeof inner !== "object" || inner === null) return undefined;
    return Object.entries(inner).find(([name]) => name === String(key))?.[1] as unknown;
  }, value);

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return truncate(text, 80);
}

/** What to write in place of an unknown key, either of the file or inside a setting. */
export function hintFor(key: string, setting?: PropertyKey): string {
  const inner =
    typeof setting === "string" && Object.hasOwn(ROW_KEYS, setting) ? ROW_KEYS[setting] : undefined;
  const known = inner ?? KEYS;
  const spelt = key.toLowerCase().replaceAll("-", "_");
  const near = nearest(spelt, inner ?? [...KEYS, ...Object.keys(ALIASES)]);
  return near === undefined ? `known keys: ${known.join(", ")}` : `did you mean ${near}?`;
}
