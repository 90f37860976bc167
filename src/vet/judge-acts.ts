/** Rules on what a command was seen doing. Pure: the findings follow from the observation alone. */
import type { Act, Finding, Observed, VetStep } from "../core/behaviour.ts";
import { plural, firstOf, formatSize } from "../core/wording.ts";
import {
  ActFindings,
  isCallAct,
  isPathAct,
  isSocketAct,
  type NameAct,
  type RunRule,
  SeenChains,
  type SocketAct,
} from "./act-rules.ts";
import { type AroundActs, judgeFile } from "./judge-files.ts";
import { judgeCall, judgeDropped, judgeProcesses } from "./judge-processes.ts";
import { talkIn } from "./look/model-talk.ts";
import type { Connection } from "../core/network.ts";

export interface ObservedStep {
  /** The number of the step. */
  readonly number: number;
  readonly what: VetStep["what"];
  readonly cause: VetStep["cause"];
  readonly reason: string;
  readonly timed_out: boolean;
  /** Processes that outlived the command. */
  readonly leftovers: number;
  /** Bytes that the command printed. */
  readonly printed: number;
  /** The part of the output that was kept. */
  readonly output: string;
  readonly observed: Observed;
  readonly connections: VetStep["connections"];
  readonly changes: VetStep["changes"];
}

export interface JudgedAround extends AroundActs {
  /** Files of the repository before anything ran. */
  readonly files: number;
}

export function judgeActs(step: ObservedStep, around: JudgedAround): readonly Finding[] {
  const { observed } = step;
  const chains = new SeenChains(observed.processes, around.workspace);
  const found = new ActFindings(step, chains);
  judgeTouch(observed, found);
  for (const act of observed.acts) {
    if (isTouch(act, observed)) continue;
    if (isPathAct(act)) judgeFile(act, { around, what: step.what, chains, found });
    else if (isCallAct(act)) judgeCall(act, found);
  }
  judgeNetwork(observed, step.connections, step, found);
  judgeProcesses(observed, step, chains, found);
  judgeDropped(observed.acts.filter(isPathAct), observed.processes, step, {
    chains,
    found,
    workspace: around.workspace,
  });
  judgeChanges(step, around, found);
  judgeEnding(step, found);
  return found.all();
}

function judgeTouch({ touched }: Observed, found: ActFindings): void {
  if (touched === null) return;
  found.add("run.canary", `touches ${touched.canary} (${touched.path})`, touched, touched.path);
}

const isTouch = (act: Act, { touched }: Observed): boolean =>
  touched !== null && isPathAct(act) && act.path === touched.path && act.pid === touched.pid;

const BUILT =
  /^(?:dist|build|out|target|coverage|\.?cache|node_modules|\.next|\.nuxt|__pycache__|[\w.-]*\.egg-info|public|tmp)\//;
const MANY_DELETED = 20;
const MIN_DELETED_SOURCES = 3;
const MAX_SHOWN = 5;

/** Judges changes of the tree, also those that no process was seen making. */
function judgeChanges(
  { changes, observed, what }: ObservedStep,
  around: JudgedAround,
  found: ActFindings,
): void {
  const { added, modified, deleted, more } = changes;
  const deletedSources = deleted.filter((path) => !BUILT.test(path));
  if (deletedSources.length >= MIN_DELETED_SOURCES && deletedSources.length >= around.files / 2)
    found.add("run.wipe", `removes ${deletedSources.length} of the repository's ${around.files} files`, null);
  else if (deletedSources.length + more > MANY_DELETED && deletedSources.length > 0)
    found.add(
      "run.deletes",
      `removes ${deletedSources.length} files: ${deletedSources.slice(0, MAX_SHOWN).join(", ")}`,
      null,
    );
  const changedSources = modified.filter(
    (path) => (!BUILT.test(path) || path.startsWith("lib/")) && !path.startsWith(".git/"),
  );
  if (changedSources.length > 0)
    found.add("run.sources", `changes ${firstOf(changedSources, MAX_SHOWN)}`, null);
  if (observed.by === "calls" || what === "given") return;
  const [first] = observed.processes;
  const [pid, at] = [first?.pid ?? 0, 0];
  const chains = new SeenChains(observed.processes, around.workspace);
  for (const [kind, paths] of [["make", added] as const, ["write", modified] as const])
    for (const path of paths)
      judgeFile(
        { kind, path: `${around.workspace}/${path}`, pid, at, times: 1 },
        { around, what, chains, found },
      );
}

const FLOOD_BYTES = 16 * 2 ** 20;

function judgeEnding(step: ObservedStep, found: ActFindings): void {
  const { what, cause, reason, timed_out, printed, observed } = step;
  const watched = what === "install" || what === "build";
  if (timed_out || cause === "timeout")
    found.add(
      watched ? "run.time" : "run.time-test",
      reason === "" ? "did not finish in time" : reason,
      null,
    );
  const limit = cause === null ? undefined : LIMITS[cause];
  if (limit !== undefined) found.add(limit, reason, null);
  if (printed > FLOOD_BYTES) found.add("run.flood", `prints ${formatSize(printed)}`, null);
  const talk = talkIn(step.output);
  if (talk !== undefined) found.add("run.talk", `prints: ${talk}`, null);
  judgeLeftovers(step, watched, found);
  const { processes, acts } = observed.missed;
  if (processes + acts > 0)
    found.add("run.more", `did more than was recorded: ${processes} processes and ${acts} acts`, null);
}

const LIMITS: Readonly<Record<string, RunRule>> = {
  pids: "run.fork-bomb",
  memory: "run.memory",
  disk: "run.disk",
};

function judgeLeftovers(
  { leftovers, observed, timed_out }: ObservedStep,
  watched: boolean,
  found: ActFindings,
): void {
  if (leftovers === 0 || observed.touched !== null || timed_out) return;
  const daemon = observed.processes.some(({ words }) => KNOWN_DAEMON.test(words.join(" ")));
  const rule = watched && !daemon ? "run.left-behind" : "run.left-behind-test";
  const text = `leaves ${plural(leftovers, "process", "processes")} behind, which ended with it`;
  found.add(rule, text, null);
}

const KNOWN_DAEMON =
  /gradle.*daemon|kotlin.*daemon|GradleDaemon|esbuild.*--service|watchman|sccache|nailgun|VBCSCompiler|MSBuild/i;

/** Addresses and names at which clouds give out credentials. */
const METADATA: ReadonlySet<string> = new Set([
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "169.254.169.123",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
  "metadata.google.internal",
  "metadata.goog",
  "metadata",
  "metadata.azure.com",
  "metadata.azure.internal",
  "instance-data",
]);

const isMetadata = (host: string): boolean => METADATA.has(host.toLowerCase().replace(/^::ffff:/, ""));

const isLoopback = (address: string): boolean =>
  /^(?:::ffff:)?127\./.test(address) || address === "::1" || address === "localhost";
const isAny = (address: string): boolean => ["0.0.0.0", "::", "::ffff:0.0.0.0"].includes(address);

/** Ports of engines and clusters that listen on loopback. */
const ENGINE_PORTS: ReadonlySet<number> = new Set([2375, 2376, 10_250, 10_255, 6443]);
const DNS_PORTS: ReadonlySet<number> = new Set([53, 853, 5353, 5355]);
const SCAN_TARGETS = 12;

function judgeNetwork(
  { acts }: Pick<Observed, "acts">,
  connections: readonly Connection[],
  { what }: Pick<VetStep, "what">,
  found: ActFindings,
): void {
  const tried = new Set<string>();
  const askingPids = new Set(acts.flatMap((act) => (act.kind === "name" ? [act.pid] : [])));
  for (const act of acts) {
    if (act.kind === "name") judgeName(act, found);
    if (!isSocketAct(act)) continue;
    // If the question for a name was seen itself, it says more than its socket.
    if (askingPids.has(act.pid) && isQuestion(act)) continue;
    if (act.kind === "listen") judgeListen(act, what, found);
    else if (act.family === "unix") judgeUnixSocket(act, found);
    else if (act.family === "other") judgeOtherSocket(act, found);
    else if (judgeConnect(act, found)) tried.add(`${act.address} ${act.port}`);
  }
  for (const each of connections) judgeConnection(each, found);
  if (tried.size >= SCAN_TARGETS) found.add("run.scan", `tries ${tried.size} addresses and ports`, null);
}

const isQuestion = ({ address, port }: SocketAct): boolean => port === 53 && isLoopback(address);

/** A long, unreadable part of a name: its data reaches whoever answers for the name. */
const CARRIES_DATA = /(?:^|\.)(?=[a-z_-]*\d)(?=[\d_-]*[a-z])[\w-]{32,}\./i;
const LONG_NAME = 100;

function judgeName(act: NameAct, found: ActFindings): void {
  const { name } = act;
  if (name === "" || /^localhost\.?$/i.test(name)) return;
  if (isMetadata(name)) found.add("run.metadata", `looks up the name ${name}`, act);
  else if (CARRIES_DATA.test(`${name}.`) || name.length > LONG_NAME)
    found.add("run.name-data", `looks up the name ${name}`, act);
  else found.add("run.name", `looks up the name ${name}`, act);
}

/** Judges a connection; returns whether it is an attempt to leave the machine. */
function judgeConnect(act: SocketAct, found: ActFindings): boolean {
  const { address, port } = act;
  const at = `${address.includes(":") ? `[${address}]` : address}${port === null ? "" : `:${port}`}`;
  if (isMetadata(address)) found.add("run.metadata", `tries to reach ${at}`, act);
  else if (port !== null && DNS_PORTS.has(port)) found.add("run.name", `looks up a name at ${at}`, act);
  else if (isLoopback(address) || isAny(address)) {
    if (port !== null && ENGINE_PORTS.has(port)) found.add("run.engine", `tries to reach ${at}`, act);
    return false;
  } else if (port === 0) return false;
  else {
    found.add("run.connect", `tries to reach ${at}`, act);
    return true;
  }
  return false;
}

const ENGINE_SOCKET =
  /\/(?:docker|podman|containerd|cri-dockerd|crio|buildkitd|dockerd?)[\w.-]*\.sock(?:et)?$|\/(?:containerd|podman|crio)\//;
const KEY_SOCKET =
  /(?:ssh-[\w-]*\/agent\.\d+|ssh-agent|agent\.sock|S\.gpg-agent|S\.keyboxd|\/keyring\/|gnome-keyring|1password|\/gcr\/ssh|kwallet|\.gnupg\/)/i;
const QUIET_SOCKET = /\/nscd\/socket$|^\/dev\/log$|^\/run\/systemd\/(?:journal|userdb|notify)/;
const BUS = /dbus|system_bus|\.X11-unix|wayland-|pulse\/native|systemd\/private|\/run\/(?:user|systemd)\//;

function judgeUnixSocket(act: SocketAct, found: ActFindings): void {
  const { address } = act;
  if (address === "" || QUIET_SOCKET.test(address)) return;
  if (ENGINE_SOCKET.test(address)) found.add("run.engine", `tries to connect to ${address}`, act);
  else if (KEY_SOCKET.test(address)) found.add("run.agent", `tries to connect to ${address}`, act);
  else if (BUS.test(address)) found.add("run.bus", `tries to connect to ${address}`, act);
}

function judgeOtherSocket(act: SocketAct, found: ActFindings): void {
  if (!/netlink|unspec|^AF_(?:NETLINK|ROUTE)$/i.test(act.address))
    found.add("run.socket", `creates a socket of ${act.address}`, act);
}

function judgeListen(act: SocketAct, what: VetStep["what"], found: ActFindings): void {
  if (act.family !== "ip" || isLoopback(act.address)) return;
  const rule = what === "test" || what === "given" ? "run.listen-test" : "run.listen";
  const port = act.port === null || act.port === 0 ? "any port" : `port ${act.port}`;
  found.add(rule, `listens on ${act.address}, ${port}`, act);
}

function judgeConnection({ host, port, method, verdict, reason }: Connection, found: ActFindings): void {
  const at = `${host}:${port}${method === null ? "" : ` (${method})`}`;
  if (isMetadata(host)) found.add("run.metadata", `requests ${at}`, null);
  else if (verdict === "allowed") found.add("run.reached", `reaches ${at}`, null);
  else found.add("run.connect", `requests ${at}: ${reason}`, null);
}
