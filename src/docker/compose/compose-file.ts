import { parseDocument } from "yaml";
import * as z from "zod";
import type { ZodError } from "zod";
import { parseDuration, parseSize } from "../../core/bounds.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";

/** A published port; only loopback addresses are representable. */
interface Port {
  readonly address: string;
  readonly host: number;
  readonly container: number;
  readonly protocol: "tcp" | "udp";
}

interface Mount {
  readonly volume: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/*
 * Readers of the short forms of a compose file: the value, or undefined when the text is of another form.
 */

/*
 * Readers of the short forms of a compose file: the value, or undefined when the text is of another form.
 */

const PORT = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]):(\d{1,5}):(\d{1,5})(?:\/(tcp|udp))?$/;
const MOUNT = /^([A-Za-z0-9][A-Za-z0-9_.-]*):(\/[^:]*)(?::(ro|rw))?$/;
const DURATION_PARTS = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

function portFrom(value: unknown): Port | undefined {
  const match = typeof value === "string" ? PORT.exec(value) : null;
  if (match === null) return undefined;
  const [host, container] = [Number(match[2]), Number(match[3])];
  if (![host, container].every((port) => port >= 1 && port <= 65_535)) return undefined;
  const address = (match[1] ?? "").replaceAll(/[[\]]/g, "");
  if (address.split(".").some((part) => Number(part) > 255)) return undefined;
  return { address, host, container, protocol: match[4] === "udp" ? "udp" : "tcp" };
}

function mountFrom(value: unknown): Mount | undefined {
  const match = typeof value === "string" ? MOUNT.exec(value) : null;
  if (match === null) return undefined;
  return { volume: match[1] ?? "", target: match[2] ?? "", readOnly: match[3] === "ro" };
}

/** Milliseconds of `10s`, `1m30s`; unlike the settings, a bare number is refused, as compose does. */
function durationFrom(value: unknown): number | undefined {
  if (typeof value !== "string" || !DURATION_PARTS.test(value)) return undefined;
  const parts = value.match(/[\d.]+[a-z]+/g) ?? [];
  return parts.reduce((sum, part) => sum + (parseDuration(part) ?? Number.NaN), 0);
}

function sizeFrom(value: unknown): number | undefined {
  const bytes = typeof value === "string" || typeof value === "number" ? parseSize(String(value)) : undefined;
  return bytes === undefined || bytes < 1 ? undefined : bytes;
}

function textsFrom(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
}

/** A list of words, or one line of plain words: quotes and escapes would need a shell's reading. */
function wordsFrom(value: unknown): readonly string[] | undefined {
  if (typeof value !== "string") return textsFrom(value);
  return /["'\\]/.test(value) || value.trim() === "" ? undefined : value.trim().split(/\s+/);
}

/** One text or a list of them. */
const oneOrMoreFrom = (value: unknown): readonly string[] | undefined =>
  typeof value === "string" ? [value] : textsFrom(value);

/** `KEY: value` or `- KEY=value`. A key without a value would come from the caller's environment: refused. */
function pairsFrom(value: unknown): Readonly<Record<string, string>> | undefined {
  const entries = Array.isArray(value) ? value.map(pairFrom) : mapEntries(value);
  if (entries === undefined) return undefined;
  const pairs = entries.filter((entry) => entry !== undefined);
  return pairs.length === entries.length ? Object.fromEntries(pairs) : undefined;
}

type Pair = readonly [string, string];

function mapEntries(value: unknown): (Pair | undefined)[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).map(([key, entry]: [string, unknown]) =>
    typeof entry === "string" || typeof entry === "number" || typeof entry === "boolean"
      ? ([key, String(entry)] as const)
      : undefined,
  );
}

function pairFrom(value: unknown): Pair | undefined {
  const match = typeof value === "string" ? /^([^=]+)=(.*)$/s.exec(value) : null;
  return match === null ? undefined : [match[1] ?? "", match[2] ?? ""];
}

/** The command of a health check in the engine's form: CMD, CMD-SHELL or NONE first. */
function probeFrom(value: unknown): readonly string[] | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : ["CMD-SHELL", value];
  const words = textsFrom(value);
  if (words === undefined) return undefined;
  const [kind] = words;
  if (kind === "NONE") return words.length === 1 ? words : undefined;
  return (kind === "CMD" || kind === "CMD-SHELL") && words.length > 1 ? words : undefined;
}

/** The part of the compose format that harness can start by itself. Unknown keys are errors everywhere. */

const form = <T>(expected: string, from: (value: unknown) => T | undefined) =>
  z.unknown().transform((value, context): T => {
    const read = from(value);
    if (read !== undefined) return read;
    context.addIssue({ code: "custom", message: `expected ${expected}` });
    return z.NEVER;
  });

const words = form("a list of texts, or words without quotes", wordsFrom);
const texts = form("a list of texts", textsFrom);
const pairs = form("KEY: value or a list of KEY=value, each with a value", pairsFrom);
const duration = form("a duration such as 10s or 1m30s", durationFrom);
const port = form("a port bound to loopback, such as 127.0.0.1:6333:6333", portFrom);
const mount = form("a named volume such as data:/var/data or data:/var/data:ro", mountFrom);
const list = <T extends z.ZodType>(item: T) => z.array(item, "expected a list");

/** A tag other than latest, or a digest: what runs must not change by itself. */
const pinnedImage = z
  .string("expected an image with a version, such as name:1.2.3")
  .regex(
    /^[a-z0-9][\w./:-]*(?::(?!latest$)[\w][\w.-]*|@sha256:[0-9a-f]{64})$/i,
    "expected an image with a version, such as name:1.2.3",
  );

const healthcheck = z.strictObject(
  {
    test: form("a command, or a list that starts with CMD, CMD-SHELL or NONE", probeFrom),
    interval: duration.optional(),
    timeout: duration.optional(),
    start_period: duration.optional(),
    retries: z.int("expected a whole number").min(1, "expected 1 or more").optional(),
  },
  { error: (issue) => (issue.code === "invalid_type" ? "expected a map with test" : undefined) },
);

const service = z.strictObject({
  image: pinnedImage,
  command: words.optional(),
  entrypoint: words.optional(),
  environment: pairs.default({}),
  labels: pairs.default({}),
  ports: list(port).default([]),
  volumes: list(mount).default([]),
  healthcheck: healthcheck.optional(),
  mem_limit: form("a size such as 256m or 2g", sizeFrom).optional(),
  restart: z
    .enum(
      ["no", "always", "unless-stopped", "on-failure"],
      "expected no, always, unless-stopped or on-failure",
    )
    .default("no"),
  profiles: texts.default([]),
  cap_drop: texts.default([]),
  security_opt: texts.default([]),
  read_only: z.boolean("expected true or false").default(false),
  tmpfs: form("a path or a list of paths", oneOrMoreFrom).default([]),
  user: form("a user such as 1000:1000", (value) =>
    typeof value === "string" || typeof value === "number" ? String(value) : undefined,
  ).optional(),
});

const labelled = z
  .strictObject({ labels: pairs.default({}) })
  .nullable()
  .transform((value) => value ?? { labels: {} });

const named = <T extends z.ZodType>(item: T) =>
  z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/), item);

const composeSchema = z
  .strictObject({
    name: z
      .string("expected a project name")
      .regex(/^[a-z0-9][a-z0-9_-]*$/, "expected a project name of a-z, 0-9, _ and -"),
    services: named(service),
    volumes: named(labelled).default({}),
    networks: z.strictObject({ default: labelled.optional() }).default({}),
  })
  .superRefine(({ services, volumes }, context) => {
    for (const [name, { volumes: mounts }] of Object.entries(services))
      for (const [index, { volume }] of mounts.entries())
        if (!Object.hasOwn(volumes, volume)) {
          const message = `expected a volume that is declared under volumes:`;
          context.addIssue({ code: "custom", path: ["services", name, "volumes", index], message });
        }
  });

type Schema = z.infer<typeof composeSchema>;
export type Service = Schema["services"][string];
type ComposeProject = Schema;

export interface ComposeFile extends ComposeProject {
  /** Where the text came from; `docker compose` is given this path. */
  readonly path: string;
}

/** The services of a compose file. Whatever is not understood ends here, with file and key. */
export function parseComposeFile(text: string, path: string): ComposeFile {
  const value = withoutVariables(yamlValue(text, path), [], path);
  const parsed = composeSchema.safeParse(value);
  if (parsed.success) return { ...parsed.data, path };
  throw firstIssue(parsed.error, value, path);
}

function yamlValue(text: string, path: string): unknown {
  const document = parseDocument(text);
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined)
    throw composeError(path, problem.message.split("\n", 1)[0]?.replace(/:$/, "") ?? "is no YAML");
  try {
    return document.toJS() as unknown;
  } catch (thrown) {
    throw composeError(path, reasonOf(thrown));
  }
}

/** Both ways of starting must see the same values, so a variable is refused; `$$` is a dollar sign. */
function withoutVariables(value: unknown, keys: readonly PropertyKey[], path: string): unknown {
  if (typeof value === "string") {
    const plain = value.replaceAll("$$", "");
    if (plain.includes("$"))
      throw composeError(path, `${dotted(keys)}: variables are not supported; write the value, or $$ for $`);
    return value.replaceAll("$$", () => "$");
  }
  if (Array.isArray(value))
    return value.map((entry: unknown, index) => withoutVariables(entry, [...keys, index], path));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, withoutVariables(entry, [...keys, key], path)]),
  );
}

function firstIssue(error: ZodError, value: unknown, path: string): HarnessError {
  const unknownKey = error.issues.find(({ code }) => code === "unrecognized_keys");
  if (unknownKey?.code === "unrecognized_keys") {
    const keys = [...unknownKey.path, unknownKey.keys[0] ?? ""];
    return composeError(path, `${dotted(keys)}: harness does not know this key`);
  }
  const [issue] = error.issues;
  if (issue === undefined) return composeError(path, "is not valid");
  if (issue.code === "invalid_key")
    return composeError(path, `${dotted(issue.path)}: expected a name of letters, digits, _ . and -`);
  const found = JSON.stringify(valueAt(value, issue.path)) ?? "nothing";
  return composeError(path, `${dotted(issue.path)}: ${sentence(issue)}, found ${found.slice(0, 80)}`);
}

const sentence = (issue: { readonly code: string; readonly message: string }): string =>
  issue.message.startsWith("expected") ? issue.message : "expected a map";

const dotted = (keys: readonly PropertyKey[]): string => keys.map(String).join(".") || "(top)";

const valueAt = (value: unknown, keys: readonly PropertyKey[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null
        ? (inner as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    value,
  );

const composeError = (path: string, message: string): HarnessError =>
  new HarnessError(EXIT.usage, `${path}: ${message}`, `mend ${path}`);
