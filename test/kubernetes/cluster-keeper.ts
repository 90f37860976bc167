import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createListener, type Server } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ClusterApi, look } from "./cluster-api.ts";
import type { GateOrder } from "./cluster-gate.ts";
import { cgroupOf, type Part, PARTS, type Plan, partWords, writeSettings } from "./cluster-parts.ts";
import { NODE, NODE_ADDRESS, writeCredentials } from "./cluster-places.ts";
import { enforcePolicies } from "./cluster-policies.ts";

/**
 * `unshare --mount --pid … node cluster-keeper.ts PLAN`: one process keeps all parts of a cluster. It runs in its own
 * process and mount namespaces, so that its end, however caused, ends all parts and removes all their mounts; the
 * network namespace that it creates has no way out but the gate. When its standard input ends, so does the cluster,
 * unless the plan says that it stays.
 */

/** How long a part may take to end when told to. */
const PATIENCE_MS = 10_000;

const outside = (line: string): void =>
  void execFileSync("sh", ["-euc", line], { stdio: ["ignore", "ignore", "inherit"] });

class Keeper {
  readonly #plan: Plan;
  readonly #network: string;
  readonly #running = new Map<Part, ChildProcess>();
  #gate: ChildProcess | undefined;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#network = path.join("/run", "cluster-network");
  }

  #at(...parts: readonly string[]): string {
    return path.join(this.#plan.folder, ...parts);
  }

  /** Paths that no flag can change are private to the cluster, too; no folder of the machine is written to. */
  async enter(): Promise<void> {
    await writeSettings(this.#plan);
    outside(
      `mount --bind '${this.#at("var-lib")}' /var/lib; mount --bind '${this.#at("var-log")}' /var/log; mount -t tmpfs tmpfs /run`,
    );
    outside(`touch ${this.#network}; unshare --net=${this.#network} true`);
    for (const group of await controllers())
      await mkdir(path.join(group, cgroupOf(this.#plan.name)), { recursive: true });
    this.inside(
      `ip link set lo up; ip link add node0 type bridge; ip addr add ${NODE_ADDRESS}/32 dev node0; ip addr add 169.254.1.1/32 dev node0; ip link set node0 up
       echo 1 >/proc/sys/net/ipv4/ip_forward`,
    );
    await this.#limitProcessors();
  }

  /** A cpuset group is empty until its processors are set. */
  async #limitProcessors(): Promise<void> {
    const folder = "/sys/fs/cgroup/cpuset";
    for (const name of ["cpuset.cpus", "cpuset.mems"]) {
      const all = await readFile(path.join(folder, name), "utf8");
      await writeFile(path.join(folder, cgroupOf(this.#plan.name), name), all);
    }
  }

  inside(line: string, input?: string): void {
    execFileSync("nsenter", [`--net=${this.#network}`, "sh", "-euc", line], {
      input: input ?? "",
      stdio: ["pipe", "ignore", "inherit"],
    });
  }

  start(part: Part): void {
    if (this.#running.has(part)) return;
    const log = openSync(this.#at("logs", `${part}.log`), "a");
    const words = [`--net=${this.#network}`, ...partWords(this.#plan)[part]];
    const child = spawn("nsenter", words, { stdio: ["ignore", log, log] });
    this.#running.set(part, child);
    child.once("exit", () => this.#running.get(part) === child && this.#running.delete(part));
  }

  async stop(part: Part, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(part);
    if (child === undefined) return;
    const ended = once(child, "exit");
    child.kill(signal);
    const late = AbortSignal.timeout(PATIENCE_MS);
    await Promise.race([ended, once(late, "abort")]);
    if (this.#running.get(part) === child) child.kill("SIGKILL");
    await ended;
  }

  alive(): readonly Part[] {
    return [...this.#running.keys()];
  }

  async stopAll(): Promise<void> {
    for (const part of PARTS.toReversed()) await this.stop(part, "SIGTERM");
  }

  /** From here on, this port of this machine's loopback belongs to the API server. */
  async openGate(): Promise<void> {
    const server = createListener();
    server.listen(this.#plan.port, "127.0.0.1");
    await once(server, "listening");
    const log = openSync(this.#at("logs", "gate.log"), "a");
    const execArgv = [`--net=${this.#network}`, process.execPath];
    const gate = fork(path.join(import.meta.dirname, "cluster-gate.ts"), [], {
      execPath: "nsenter",
      execArgv,
      stdio: ["ignore", log, log, "ipc"],
    });
    this.#gate = gate;
    await once(gate, "spawn");
    gate.send("accept", server, () => server.close());
  }

  async order(order: GateOrder): Promise<unknown> {
    const gate = this.#gate;
    if (gate === undefined) throw new Error("there is no gate yet");
    const answered = once(gate, "message");
    gate.send(order);
    const [said, server] = (await answered) as [{ readonly error?: string }, Server | undefined];
    if (said.error !== undefined) throw new Error(said.error);
    return server === undefined ? said : { said, server };
  }

  /**
   * Forwards connections to a port of the node's address, or on the node to this port of its loopback, to this port of
   * the machine's loopback.
   */
  async letOut(port: number, node: boolean): Promise<number> {
    const listen = node ? { host: "127.0.0.1", port } : { host: NODE_ADDRESS, port: 0 };
    const { said, server } = (await this.order({ listen })) as { said: { port: number }; server: Server };
    server.on("connection", (inner) => {
      const outer = connect(port, "127.0.0.1");
      for (const socket of [inner, outer]) socket.on("error", () => (inner.destroy(), outer.destroy()));
      inner.pipe(outer).pipe(inner);
    });
    return said.port;
  }
}

async function controllers(): Promise<readonly string[]> {
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  return mounts.filter(([, , kind]) => kind === "cgroup").flatMap(([, place]) => place ?? []);
}

/** Starts parts in order if one needs another; the rest wait by themselves. */
async function bringUp(keeper: Keeper, plan: Plan): Promise<ClusterApi> {
  await writeCredentials(plan.folder, plan.port);
  await keeper.enter();
  for (const part of ["engine", "etcd", "api"] as const) keeper.start(part);
  await keeper.openGate();
  const api = await ClusterApi.of(path.join(plan.folder, "config/policies"));
  await api.until("/readyz", ({ status }) => status === 200, 120_000);
  for (const part of ["controllers", "scheduler", "kubelet"] as const) keeper.start(part);
  if (plan.network !== "none") keeper.start("proxy");
  if (plan.network === "enforced") enforcePolicies(api, (line, input) => keeper.inside(line, input));
  await api.until("/api/v1/namespaces/default/serviceaccounts/default", ({ status }) => status === 200);
  await api.until(
    `/api/v1/nodes/${NODE}`,
    ({ body }) =>
      (look(body, "status", "conditions") as { type: string; status: string }[] | undefined)?.some(
        ({ type, status }) => type === "Ready" && status === "True",
      ) === true,
    120_000,
  );
  return api;
}

const isPart = (name: string | null): name is Part => PARTS.some((part) => part === name);

/** Orders from tests: which part to stop or start, how the gate shall fail, which port to forward. */
async function handleOrder(keeper: Keeper, { method, url = "" }: IncomingMessage): Promise<unknown> {
  const { pathname, searchParams } = new URL(url, "http://keeper");
  const part = searchParams.get("part");
  if (method === "GET") return { alive: keeper.alive() };
  if (pathname === "/stop" && isPart(part))
    await keeper.stop(part, searchParams.has("kill") ? "SIGKILL" : "SIGTERM");
  else if (pathname === "/start" && isPart(part)) keeper.start(part);
  else if (pathname === "/gate")
    return keeper.order(JSON.parse(searchParams.get("order") ?? "{}") as GateOrder);
  else if (pathname === "/out")
    return { port: await keeper.letOut(Number(searchParams.get("port")), searchParams.has("node")) };
  else if (pathname !== "/down") throw new Error(`no such order: ${url}`);
  return { alive: keeper.alive() };
}

const plan = JSON.parse(await readFile(process.argv[2] ?? "", "utf8")) as Plan;
const keeper = new Keeper(plan);
const { promise: told, resolve: end } = Promise.withResolvers<string>();
process.once("SIGTERM", () => end("a signal"));
process.once("SIGINT", () => end("a signal"));
if (process.argv[3] !== "stays") process.stdin.once("end", () => end("its owner is gone")).resume();

async function answered(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
  try {
    answer.end(JSON.stringify(await handleOrder(keeper, asked)));
    if (asked.url === "/down") end("an order");
  } catch (thrown) {
    answer.statusCode = 500;
    answer.end(JSON.stringify({ error: String(thrown) }));
  }
}

const control = createServer((asked: IncomingMessage, answer: ServerResponse) => {
  void answered(asked, answer);
});
control.listen(path.join(plan.folder, "control"));
try {
  await Promise.race([
    bringUp(keeper, plan),
    told.then((why) => Promise.reject(new Error(`ended by ${why}`))),
  ]);
  await writeFile(path.join(plan.folder, "ready"), "");
  const why = await told;
  process.stderr.write(`going down: ${why}\n`);
} catch (thrown) {
  process.stderr.write(`${String(thrown)}\n`);
  process.exitCode = 1;
}
await Promise.race([keeper.stopAll(), sleep(60_000)]);
process.exit();
