import * as z from "zod";
import { DURATION_FORM, parseDuration } from "../core/wording.ts";
import { isFields } from "../core/raw-data.ts";

/** MCP servers as people write them: in the settings (`mcp`), and in a project's file. */

const SERVER_NAME = /^[A-Za-z0-9](?:_?[A-Za-z0-9-]){0,31}$/;
const SERVER_NAME_FORM = "a name such as github: letters, digits, - and single _, at most 32";
const VARIABLE = /^[A-Za-z_]\w{0,99}$/;
const HEADER = /^[A-Za-z0-9-]{1,100}$/;
const MAX_SERVERS = 32;
const MAX_ITEMS = 200;

/** Headers that determine the recipient and the form of a request: harness sets them itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "content-type",
  "accept",
  "transfer-encoding",
  "upgrade",
  "te",
  "trailer",
  "proxy-authorization",
  "mcp-session-id",
  "mcp-protocol-version",
]);

const text = z
  .string("expected text")
  .max(4000, "expected at most 4000 characters")
  .refine((text) => !text.includes("\0"), "expected text without a NUL");
const word = text.min(1, "expected text that is not empty");

const limit = (most: number) =>
  z.union([z.string(), z.number()], `expected ${DURATION_FORM}`).transform((value, context) => {
    const ms = parseDuration(String(value));
    if (ms !== undefined && ms >= 100 && ms <= most) return ms;
    const message = `expected ${DURATION_FORM}, from 100ms to ${most / 60_000}m`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

const globs = z.array(word.max(200), "expected a list of tool names").max(MAX_ITEMS);
const variables = z.record(
  z.string().regex(VARIABLE, "expected a variable's name such as API_TOKEN"),
  text,
  "expected variables with their values",
);
const headers = z.record(
  z
    .string()
    .regex(HEADER, "expected a header's name such as Authorization")
    .refine(
      (name) => !OWN_HEADERS.has(name.toLowerCase()),
      "expected a header that the harness does not set itself",
    ),
  text.refine((value) => !/[\r\n]/.test(value), "expected a value without line breaks"),
  "expected headers with their values",
);

const entryForm = z.strictObject({
  command: z
    .union([word, z.array(word).min(1, "expected a program and its arguments")], "expected a command")
    .optional(),
  args: z.array(text, "expected a list of arguments").max(MAX_ITEMS).optional(),
  env: variables.optional(),
  cwd: word.optional(),
  sandbox: z.boolean("expected true or false").optional(),
  url: word.regex(/^(?:https?:\/\/|\$\{)/, "expected an http:// or https:// address").optional(),
  headers: headers.optional(),
  type: z
    .enum(
      ["stdio", "http", "streamable-http"],
      "expected stdio or http; servers that only speak SSE are not supported",
    )
    .optional(),
  enabled: z.boolean("expected true or false").optional(),
  tools: z.strictObject({ allow: globs.optional(), deny: globs.optional() }).optional(),
  on_change: z.enum(["warn", "leave-out"], "expected warn or leave-out").optional(),
  init_timeout: limit(10 * 60_000).optional(),
  call_timeout: limit(60 * 60_000).optional(),
});

/** The keys of one server. */
export const MCP_KEYS = Object.keys(entryForm.shape);

const entry = entryForm.superRefine((fields, context) => {
  for (const message of faultsOf(fields)) context.addIssue({ code: "custom", message });
});

type Entry = z.infer<typeof entry>;

const OF_COMMANDS = ["args", "env", "cwd", "sandbox"] as const;

function faultsOf(fields: Partial<Entry>): readonly string[] {
  const { command, url, args, type } = fields;
  if ((command === undefined) === (url === undefined))
    return ["expected either a command, or the url of a server"];
  if (url !== undefined) {
    const odd = OF_COMMANDS.filter((key) => fields[key] !== undefined);
    return [
      ...odd.map((key) => `${key} is only for a server with a command, and this one has a url`),
      ...(type === "stdio" ? ["a server with a url cannot use stdio"] : []),
    ];
  }
  return [
    ...(fields.headers === undefined
      ? []
      : ["headers are only for a server with a url, and this one has a command"]),
    ...(Array.isArray(command) && args !== undefined
      ? ["args needs a command that is a single string; put the arguments into the list instead"]
      : []),
    ...(type !== undefined && type !== "stdio" ? ["a server with a command always uses stdio"] : []),
  ];
}

interface Common {
  readonly enabled: boolean;
  /** Globs over the server's own tool names and over `server__tool`; an empty `allow` allows all. */
  readonly tools: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  /** What to do with a tool whose description has changed. */
  readonly on_change: "warn" | "leave-out";
  readonly init_timeout: number;
  readonly call_timeout: number;
}

interface McpCommand extends Common {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** false: runs directly on this machine. */
  readonly sandbox: boolean;
}

interface McpUrl extends Common {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** As written, including `${VAR}`. */
export type McpServerSettings = McpCommand | McpUrl;

function commonOf({ tools, ...entry }: Entry): Common {
  return {
    enabled: entry.enabled ?? true,
    tools: { allow: tools?.allow ?? [], deny: tools?.deny ?? [] },
    on_change: entry.on_change ?? "warn",
    init_timeout: entry.init_timeout ?? 5000,
    call_timeout: entry.call_timeout ?? 60_000,
  };
}

const server = entry.transform((entry): McpServerSettings => {
  const { command = [], args = [], env = {}, cwd, sandbox = true, url, headers: sent = {} } = entry;
  const common = commonOf(entry);
  if (url !== undefined) return { url, headers: sent, ...common };
  return { command: [command, args].flat(), env, ...(cwd === undefined ? {} : { cwd }), sandbox, ...common };
});

export const mcpServers = z
  .record(z.string().regex(SERVER_NAME), server, {
    error: ({ code }) =>
      code === "invalid_key" ? `expected ${SERVER_NAME_FORM}` : "expected servers by their names",
  })
  .refine((all) => Object.keys(all).length <= MAX_SERVERS, `expected at most ${MAX_SERVERS} servers`);

export type McpServers = Readonly<Record<string, McpServerSettings>>;

/** Keys under which other programs keep the same table. */
const TABLES = ["mcpServers", "servers", "mcp"];

/** Keys in other programs' entries that are of no use here, and harmless. */
const FOREIGN: ReadonlySet<string> = new Set([
  "description",
  "disabled",
  "alwaysAllow",
  "autoApprove",
  "timeout",
]);

export interface ProjectServers {
  readonly servers: McpServers;
  /** Entries that were left out, and why; one bad entry does not spoil the others. */
  readonly faults: readonly string[];
}

/** The servers of a project's file, read from the first key of TABLES that it has. */
export function projectServers(value: unknown): ProjectServers {
  const table = tableIn(value);
  if (table === undefined)
    return { servers: {}, faults: ["it contains no servers; expected the key mcpServers"] };
  const rows = Object.entries(table).map(([name, entry]) => {
    const read = mcpServers.safeParse({ [name]: withoutForeign(entry) });
    return read.success
      ? { servers: Object.entries(read.data) }
      : { fault: `${name}: ${read.error.issues.map(issueText).join("; ")}` };
  });
  const found = rows.flatMap(({ servers = [] }) => servers).slice(0, MAX_SERVERS);
  return { servers: Object.fromEntries(found), faults: rows.flatMap(({ fault = [] }) => fault) };
}

function tableIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isFields(value)) return undefined;
  const key = TABLES.find((each) => Object.hasOwn(value, each));
  if (key === undefined) return undefined;
  const table = value[key];
  return isFields(table) ? table : undefined;
}

function withoutForeign(entry: unknown): unknown {
  if (!isFields(entry)) return entry;
  const own = Object.fromEntries(Object.entries(entry).filter(([key]) => !FOREIGN.has(key)));
  return entry["disabled"] === true ? { ...own, enabled: false } : own;
}

function issueText(issue: z.core.$ZodIssue): string {
  const at = issue.path.slice(1).map(String).join(".");
  const what = issue.code === "unrecognized_keys" ? `unknown: ${issue.keys.join(", ")}` : issue.message;
  return at === "" ? what : `${at}: ${what}`;
}

/** For records that outlive a run: a value that is written out may be a secret, so it is hidden. */
export const withoutValues = (servers: McpServers): McpServers =>
  Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [
      name,
      "url" in server
        ? { ...server, headers: hidden(server.headers) }
        : { ...server, env: hidden(server.env) },
    ]),
  );

const hidden = (values: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, /^\$\{\w+\}$/.test(value) ? value : "(hidden)"]),
  );
