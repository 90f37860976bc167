import type { Observed, VetStep } from "../../core/behaviour.ts";
import type { Connection } from "../../core/network.ts";
import type { ActFindings } from "./act-rules.ts";
import { isSocketAct, type NameAct, type SocketAct } from "./process-chain.ts";

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
const MANY = 12;

export function judgeNetwork(
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
  if (tried.size >= MANY) found.add("run.scan", `tries ${tried.size} addresses and ports`, null);
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
