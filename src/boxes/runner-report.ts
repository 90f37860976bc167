import { BOX_HOME } from "../core/ports.ts";
import { textOfBytes } from "../core/raw-data.ts";
import type { RunnerClient } from "./runner-client.ts";
import { decodeFields, REQUEST, textIn } from "./runner-protocol.ts";

/** What the first process in the box reports about itself. */
export interface BoxReport {
  readonly status: string;
  readonly mountinfo: string;
  readonly netdev: string;
  readonly route: string;
  readonly rlimits: string;
  readonly stats: readonly SeenFile[];
  readonly hostname: string;
}

export interface SeenFile {
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  readonly mode?: number;
}

interface ReportOptions {
  /** Lets commands request commits from the harness. */
  readonly mayAsk?: boolean;
  /** Mounts whose loss ends the box (sandbox/runner/guard.h). */
  readonly guarded?: readonly string[];
}

/** The box's report: its files of /proc, and what it finds at these paths. */
export async function askReport(
  client: RunnerClient,
  paths: readonly string[],
  { mayAsk = false, guarded = [] }: ReportOptions = {},
): Promise<BoxReport> {
  const { end } = await client.ask(REQUEST.hello, [
    ...paths.map((path) => ["p", path] as const),
    ...guarded.map((path) => ["w", path] as const),
    ...(mayAsk ? [["g", ""] as const] : []),
  ]);
  const fields = decodeFields(end.payload);
  return {
    status: textIn(fields, "s"),
    mountinfo: textIn(fields, "m"),
    netdev: textIn(fields, "n"),
    route: textIn(fields, "r"),
    rlimits: textIn(fields, "l"),
    hostname: textIn(fields, "h").trim(),
    stats: fields.filter(({ name }) => name === "f").flatMap(({ bytes }) => seenFile(textOfBytes(bytes))),
  };
}

/** `dev:ino:mode:path`. A path that could not be read is left out, so the comparison reports it as missing. */
function seenFile(text: string): readonly SeenFile[] {
  const match = /^(\d+):(\d+):([0-7]+):([^]*)$/.exec(text);
  if (match === null) return [];
  const [, dev = "", ino = "", mode = "", path = ""] = match;
  return [{ path, dev, ino, mode: Number.parseInt(mode, 8) }];
}

/** One line for each deviation of the first process's own status from the plan. */
export function processLines(
  { user, capabilities }: PlannedProcess,
  status: string,
  { gvisor = false }: ReportOf = {},
): readonly string[] {
  const granted = capabilities === undefined ? undefined : maskOf(capabilities);
  const fields = new Map(
    status.split("\n").map((line) => [line.split(":", 1)[0] ?? "", line.slice(line.indexOf(":") + 1).trim()]),
  );
  const field = (name: string): string => fields.get(name) ?? "unknown";
  const must = (name: string, wanted: string): readonly string[] =>
    field(name) === wanted ? [] : [`${name} is ${field(name)}, planned ${wanted}`];
  // gVisor prints no CapAmb. Ambient capabilities are always among the inheritable ones and the permitted ones.
  const noAmbient = !fields.has("CapAmb") && (ZERO.test(field("CapInh")) || ZERO.test(field("CapPrm")));
  // The kernel lists the primary group among the supplementary ones.
  const groups = field("Groups").split(" ");
  return [
    ...must("Uid", repeatFourTimes(user.uid)),
    ...must("Gid", repeatFourTimes(user.gid)),
    ...(groups.every((group) => group === "" || group === String(user.gid))
      ? []
      : [`Groups are ${field("Groups")}, planned none`]),
    ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
      .filter(
        (name) => !ZERO.test(field(name)) && field(name) !== granted && !(name === "CapAmb" && noAmbient),
      )
      .map((name) => `${name} is ${field(name)}, planned ${granted ?? "none"}`),
    // A kernel that reports the first is not gVisor's.
    ...(gvisor && !fields.has("NoNewPrivs") ? [] : [...must("NoNewPrivs", "1"), ...must("Seccomp", "2")]),
  ];
}

interface PlannedProcess {
  readonly user: { readonly uid: number; readonly gid: number };
  /** By their kernel numbers; none when left out. */
  readonly capabilities?: readonly number[] | undefined;
}

interface ReportOf {
  /**
   * Its kernel reports neither no-new-privileges nor limits, and a seccomp profile is for the host's kernel, which the
   * box never calls. What it does report is compared; for the rest only what was read back of the spec counts.
   */
  readonly gvisor?: boolean;
}

/** gVisor, by the usual names of its runtime or of its class, also with a platform suffix (runsc-kvm). */
export const isGvisorRuntime = (runtime: string | null | undefined): boolean =>
  /^(?:runsc|gvisor)/.test(runtime ?? "");

/** Real, effective, saved and file system ids. */
const repeatFourTimes = (id: number): string => `${id}\t${id}\t${id}\t${id}`;

const ZERO = /^0+$/;

/** A set of capabilities as the kernel writes it. */
const maskOf = (numbers: readonly number[]): string =>
  numbers
    .reduce((mask, bit) => mask | (1 << bit), 0)
    .toString(16)
    .padStart(16, "0");

/** Checks that the box has only its own loopback; with an open network it must at least have that. */
export function networkLines(open: boolean, report: NetworkReport): readonly string[] {
  const { loopback, devices, routes } = networkOf(report);
  const missing = loopback ? [] : ["there is no interface lo"];
  if (open) return missing;
  return [
    ...missing,
    ...devices.map((name) => `there is an interface ${name}`),
    ...routes.map((line) => `there is a route: ${line.trim().replaceAll(/\s+/g, " ")}`),
  ];
}

/** Whether nothing leads out of the box: then there is nothing to prove. */
export function isAlone(report: NetworkReport): boolean {
  const { devices, routes } = networkOf(report);
  return devices.length === 0 && routes.length === 0;
}

type NetworkReport = Pick<BoxReport, "netdev" | "route">;

/** What the box has besides its loopback. */
function networkOf({ netdev, route }: NetworkReport): {
  readonly loopback: boolean;
  readonly devices: readonly string[];
  readonly routes: readonly string[];
} {
  const names = linesBelow(netdev, 2).map((line) => line.split(":", 1)[0]?.trim() ?? "");
  return {
    loopback: names.includes("lo"),
    devices: names.filter((name) => name !== "lo" && !FALLBACK.test(name)),
    routes: linesBelow(route, 1),
  };
}

/** The lines of a table of /proc below its head. */
const linesBelow = (table: string, head: number): readonly string[] =>
  table
    .split("\n")
    .slice(head)
    .filter((line) => line.trim() !== "");

/** Devices that the host's tunnel modules add to every network namespace. They are down and lead nowhere. */
const FALLBACK = /^(tunl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|sit0|ip6tnl0|ip6gre0)$/;

export function limitLines(text: string, { gvisor = false }: ReportOf = {}): readonly string[] {
  return Object.entries(LIMIT_TITLES).flatMap(([name, title]) => {
    const most = ULIMITS[name as keyof typeof ULIMITS];
    const line = text.split("\n").find((one) => one.startsWith(`${title} `)) ?? "";
    if (gvisor && line === "") return [];
    const [, hard] = line.slice(title.length).trim().split(/\s+/);
    return hard !== undefined && /^\d+$/.test(hard) && Number(hard) <= most
      ? []
      : [`the limit ${name} is ${hard ?? "unknown"}, planned ${most}`];
  });
}

/** No nproc: it counts the processes of the uid on the whole host. */
export const ULIMITS = { nofile: 4096, core: 0, fsize: 4 * 2 ** 30, memlock: 64 * 1024, msgqueue: 0 };

/** Where a box looks for programs. Our git comes first: it requests a commit instead of writing to a protected directory. */
export const BOX_PATH =
  "/usr/local/lib/harness/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** All variables of a box's first process. */
export const boxEnvironment = (gitConfig: string): readonly string[] => [
  `PATH=${BOX_PATH}`,
  `HOME=${BOX_HOME}`,
  "LANG=C.UTF-8",
  "TERM=dumb",
  "CI=1",
  "GIT_TERMINAL_PROMPT=0",
  "GIT_OPTIONAL_LOCKS=0",
  `GIT_CONFIG_GLOBAL=${gitConfig}`,
];

const LIMIT_TITLES: Readonly<Record<keyof typeof ULIMITS, string>> = {
  nofile: "Max open files",
  core: "Max core file size",
  fsize: "Max file size",
  memlock: "Max locked memory",
  msgqueue: "Max msgqueue size",
};

export const hostLines = ({ hostname }: BoxReport): readonly string[] =>
  hostname === "sandbox" ? [] : [`the host name is ${JSON.stringify(hostname)}`];

/** One line of /proc/self/mountinfo. */
export interface MountPoint {
  readonly path: string;
  /** The part of the file system that is mounted. */
  readonly root: string;
  readonly type: string;
  readonly options: ReadonlySet<string>;
  readonly superOptions: readonly string[];
  /** Whether mounts below it propagate to the host. */
  readonly shared: boolean;
}

/** Lines that cannot be parsed are returned as they are. */
export function readMountinfo(text: string): {
  readonly points: readonly MountPoint[];
  readonly strange: readonly string[];
} {
  const lines = text.split("\n").filter((line) => line !== "");
  const points = lines.map(readLine);
  return {
    points: points.filter((point) => point !== undefined),
    strange: lines.filter((_, index) => points[index] === undefined),
  };
}

function readLine(line: string): MountPoint | undefined {
  const [left = "", right] = line.split(" - ", 2);
  const [, , , root, path, options, ...optional] = left.split(" ");
  const [type, , superOptions = ""] = right?.split(" ") ?? [];
  if (root === undefined || path === undefined || options === undefined || type === undefined)
    return undefined;
  return {
    path: unescaped(path),
    root: unescaped(root),
    type,
    options: new Set(options.split(",")),
    superOptions: superOptions.split(","),
    shared: optional.some((field) => field.startsWith("shared:")),
  };
}

/** The kernel writes space, tab, newline and backslash as octal numbers; every other byte as it is. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
