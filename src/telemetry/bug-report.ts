import { maskSecrets, secretMasks } from "../core/secrets.ts";
import { visible } from "../core/visible.ts";
import { entryText, type LogFields, type KeptLog } from "./diagnostics-log.ts";

/** The file for a bug report: what helps to find a bug, without private data. Pure. */

export interface PrivateData {
  /** Folders that are the user's home, by every path that leads there. */
  readonly homes: readonly string[];
  readonly users: readonly string[];
  readonly hosts: readonly string[];
  /** Values that are secret whatever they look like. */
  readonly values: readonly string[];
}

/** Names that reveal nothing about a person. */
const COMMON_NAMES: ReadonlySet<string> = new Set(["", "root", "localhost"]);

const quoted = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** Matches any of these names as a whole word; undefined when none of them reveals anything. */
function wordOf(names: readonly string[]): RegExp | undefined {
  const telling = names.filter((name) => name.length > 1 && !COMMON_NAMES.has(name.toLowerCase()));
  if (telling.length === 0) return undefined;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${telling.map(quoted).join("|")})(?![\\p{L}\\p{N}])`, "giu");
}

/** A part of an address may be masked already, and that mask contains a space. */
const USER_INFO = /(:\/\/)(?:\[secret: [^\]]{0,40}\]|[^\s/@"'`<>]){1,1000}@/g;
const QUERY =
  /(:\/\/(?:\[secret: [^\]]{0,40}\]|[^\s"'`<>?#]){1,1000}\?)(?:\[secret: [^\]]{0,40}\]|[^\s"'`<>])+/g;

/** Removes what others may not read from a text. Idempotent. */
export function redactor({ homes, users, hosts, values }: PrivateData): (text: string) => string {
  const masks = secretMasks(values.map((value) => ({ name: "*", value })));
  const folders = [...new Set(homes.map((home) => home.replace(/\/+$/, "")))]
    .filter((home) => home.length > 1)
    .toSorted((a, b) => b.length - a.length)
    .flatMap((home) => [home, encodeURIComponent(home), home.replaceAll("/", "\\/")]);
  const [user, host] = [wordOf(users), wordOf(hosts)];
  return (text) => {
    const known = Buffer.from(masks.mask(Buffer.from(text))).toString("utf8");
    let clean = maskSecrets(known.replaceAll(USER_INFO, "$1[masked]@"));
    for (const folder of folders) clean = clean.replaceAll(folder, "~");
    clean = clean
      .replaceAll(/(\/(?:home|Users)\/)[^/\s"'`:,;)\]}<>]+/g, "$1[user]")
      .replaceAll(QUERY, "$1[masked]")
      .replaceAll(/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+/g, "[address]");
    if (user !== undefined) clean = clean.replaceAll(user, "[user]");
    return host === undefined ? clean : clean.replaceAll(host, "[host]");
  };
}

export interface BugReport {
  readonly made: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly checks: readonly {
    readonly id: string;
    readonly state: string;
    readonly detail: string;
    readonly remedy: string;
  }[];
  readonly settings: readonly { readonly key: string; readonly value: unknown; readonly origin: string }[];
  /** Names of the variables that are set. */
  readonly variables: readonly string[];
  readonly logs: readonly KeptLog[];
}

/** The content of the report, in words. */
export const contentsOfReport = ({ checks, settings, variables, logs }: BugReport): readonly string[] => [
  "versions of harness, node and the system",
  `${checks.length} results of doctor`,
  `${settings.length} settings that differ from the default, and who set them`,
  `names of ${variables.length} environment variables, without their values`,
  `diagnostics of the last ${logs.length} processes: times, counts, verdicts, errors with where they came from`,
];

export const LEFT_OUT =
  "no prompts, replies, commands, outputs or files; secrets, home folders, names of users and this machine are masked";

/** Most characters of all diagnostics together; the oldest are left out. */
const MAX_LOGS = 1024 * 1024;

export function bugReportText(report: BugReport, redact: (text: string) => string): string {
  const sections = [
    ["versions", Object.entries(report.versions).map(([name, version]) => `${name}: ${version}`)],
    [
      "doctor",
      report.checks.flatMap(({ id, state, detail, remedy }) => [
        `${state.padEnd(4)} ${id}: ${detail}`,
        ...(remedy === "" ? [] : [`     next: ${remedy}`]),
      ]),
    ],
    [
      "settings that differ from the default",
      report.settings.map(
        ({ key, value, origin }) => `${key} = ${JSON.stringify(redactDeeply(value, redact))}  (${origin})`,
      ),
    ],
    ["environment variables that are set", [report.variables.join(" ")]],
    ["diagnostics, the newest process first", logLines(report.logs, redact)],
  ] as const;
  const head = [
    "A harness report for a bug. Read it before you share it.",
    `made ${new Date(Math.floor(report.made)).toISOString()}`,
    `holds: ${contentsOfReport(report).join("; ")}`,
    `left out: ${LEFT_OUT}`,
  ];
  const body = sections.flatMap(([title, lines]) => [
    "",
    `== ${title}`,
    ...(lines.length === 0 ? ["none"] : lines),
  ]);
  return visible(redact(`${[...head, ...body].join("\n")}\n`).toWellFormed());
}

/** Redacts value by value: in JSON text, escapes could hide where a secret begins. */
function redactDeeply(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((each) => redactDeeply(each, redact));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [redact(key), redactDeeply(each, redact)]),
  );
}

function logLines(logs: readonly KeptLog[], redact: (text: string) => string): readonly string[] {
  const lines: string[] = [];
  let left = MAX_LOGS;
  for (const { name, entries } of logs) {
    const own = [
      "",
      `-- ${name}`,
      ...entries.map((entry) =>
        entryText({ ...entry, fields: redactDeeply(entry.fields, redact) as LogFields }),
      ),
    ];
    left -= own.reduce((sum, line) => sum + line.length + 1, 0);
    if (left < 0) return [...lines, "", "-- older entries are left out to limit the length"];
    lines.push(...own);
  }
  return lines;
}
