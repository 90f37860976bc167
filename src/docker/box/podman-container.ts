import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type Docker from "dockerode";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { asList, type Fields, fieldsOf } from "../../core/raw-data.ts";
import { environmentLines, type Inspected, labelLines, mountLines } from "./container-check.ts";
import { type BoxPlan, containerSpec } from "../container-spec.ts";
import { askEngine, type Engine } from "../engine.ts";
import { MAX_PROCESSES, ociDifferences, PERIOD, podmanSpec, quotaOf } from "./podman-spec.ts";

/**
 * Containers through Podman's own interface. Its report of a container leaves out and renames much of the request; so
 * the plan is compared with the configuration that Podman hands to its runtime, and with the resulting cgroup. Both
 * exist once the container is prepared, before anything of it runs.
 */

export async function createOnPodman(engine: Engine, plan: BoxPlan): Promise<Docker.Container> {
  refuseOpen(plan);
  const folder = await mkdtemp(path.join(tmpdir(), "harness-podman-"));
  try {
    const seccompFile = path.join(folder, "seccomp.json");
    await writeFile(seccompFile, plan.seccomp, { mode: 0o600 });
    const spec = podmanSpec(plan, { seccompFile, nproc: await mostProcesses() });
    const answer = await askPodman(engine, "/containers/create", spec);
    return engine.api.getContainer((answer as { readonly Id: string }).Id);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes the namespaces and mounts of the container; its first process waits to become the command. */
export const prepareOnPodman = (engine: Engine, { id }: Docker.Container): Promise<unknown> =>
  askPodman(engine, `/containers/${id}/init`, {});

interface PodmanReport {
  readonly OCIConfigPath?: unknown;
  readonly OCIRuntime?: unknown;
}

/** The deviations of what the engine made from the plan, and the engine's report in the terms of Docker's interface. */
export async function inspectOnPodman(
  engine: Engine,
  plan: BoxPlan,
  container: Docker.Container,
): Promise<{ readonly inspected: Inspected; readonly lines: readonly string[] }> {
  const [inspected, own] = await Promise.all([
    container.inspect() as Promise<unknown> as Promise<Inspected>,
    askPodman(engine, `/containers/${container.id}/json`) as Promise<PodmanReport>,
  ]);
  const config = await configAt(own.OCIConfigPath);
  const lines = [
    ...ociDifferences(plan, config),
    ...reportLines(plan, inspected, own),
    ...environmentOf(plan, config),
    ...(await cgroupDifferences(plan, inspected.State?.Pid)),
  ];
  return { inspected, lines };
}

async function configAt(file: unknown): Promise<unknown> {
  try {
    return JSON.parse(await readFile(String(file), "utf8")) as unknown;
  } catch (thrown) {
    const message = `Podman's record of the box is in ${String(file)}, which cannot be read here: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      "use the Podman of this machine and of this user: systemctl --user start podman.socket",
      thrown,
    );
  }
}

const KNOWN_RUNTIMES = ["runc", "crun", "runsc"];

/** Checks what only the engine's report tells. */
function reportLines(
  plan: BoxPlan,
  { Image, Config, HostConfig, Mounts, ExecIDs }: Inspected,
  own: PodmanReport,
): string[] {
  const [config, host] = [fieldsOf(Config), fieldsOf(HostConfig)];
  const planned = containerSpec(plan);
  const runtime = path.basename(String(own.OCIRuntime));
  const known = plan.host.runtime === null ? KNOWN_RUNTIMES : [path.basename(plan.host.runtime)];
  const checks: readonly (readonly [string, unknown, unknown])[] = [
    ["Privileged", host["Privileged"], false],
    ["AutoRemove", host["AutoRemove"], planned.HostConfig.AutoRemove],
    ["LogConfig.Type", fieldsOf(host["LogConfig"])["Type"], "none"],
    ["RestartPolicy.Name", fieldsOf(host["RestartPolicy"])["Name"], "no"],
    ["Tty", config["Tty"], false],
    ["OpenStdin", config["OpenStdin"], planned.OpenStdin],
    ["Healthcheck", JSON.stringify(fieldsOf(config["Healthcheck"])["Test"]), '["NONE"]'],
    ...(plan.image.startsWith("sha256:") ? [["Image", Image, plan.image] as const] : []),
  ];
  return [
    ...checks
      .filter(([, found, wanted]) => found !== wanted)
      .map(([name, found, wanted]) => `${name} is ${String(found)}, planned ${String(wanted)}`),
    ...(known.includes(runtime) ? [] : [`the runtime is ${runtime}, planned ${known.join(", ")}`]),
    ...labelLines(fieldsOf(planned.Labels), fieldsOf(config["Labels"])),
    ...mountLines(plan, Mounts),
    ...(Array.isArray(ExecIDs) && ExecIDs.length > 0 ? ["something else was started in it"] : []),
  ];
}

/** By default the engine passes the host's proxy on to containers, with its password. */
function environmentOf(plan: BoxPlan, config: unknown): readonly string[] {
  const env = fieldsOf(fieldsOf(config)["process"])["env"];
  const names = asList(env).map((line) => String(line).split("=", 1)[0] ?? "");
  return [
    ...environmentLines(containerSpec(plan).Env, env),
    ...names.filter((name) => /_proxy$/i.test(name)).map((name) => `the engine sets ${name}`),
  ];
}

function refuseOpen({ mode }: BoxPlan): void {
  if (mode !== "danger-full-access") return;
  const message = "no box with full access on Podman: its network has never been tested there";
  throw new HarnessError(EXIT.sandbox, message, "leave out --mode danger-full-access, or use Docker");
}

/** This process's own limit, because an engine of this machine has the same or a higher one. */
async function mostProcesses(): Promise<number> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const own = Number(/^Max processes\s+\S+\s+(\d+)/m.exec(text)?.[1] ?? MAX_PROCESSES);
  return Math.min(own, MAX_PROCESSES);
}

/** The oldest version of the interface that has all of this; later versions answer to it. */
const OWN_API = "/v4.0.0/libpod";

/** Sends `body`, if there is one. */
const askPodman = ({ api }: Engine, at: string, body?: Fields): Promise<unknown> =>
  askEngine(api, {
    path: `${OWN_API}${at}`,
    method: body === undefined ? "GET" : "POST",
    ...(body === undefined ? {} : { options: { _body: body } }),
    statusCodes: { 200: true, 201: true, 204: true, 304: true, 404: "not there", 500: "server error" },
  });

/**
 * Compares the limits that this machine's kernel reports for a process with the plan: an engine without rights over the
 * cgroups asks for limits and starts without them. One line for each limit that does not hold.
 */
export async function cgroupDifferences(
  plan: BoxPlan,
  pid: unknown,
  root = { proc: "/proc", cgroup: "/sys/fs/cgroup" },
): Promise<readonly string[]> {
  if (typeof pid !== "number" || pid < 2) return ["it has no process whose limits could be read"];
  const text = await readFile(path.join(root.proc, String(pid), "cgroup"), "utf8").catch(() => "");
  const places = placesIn(text, root.cgroup);
  const found = await Promise.all(
    limitsOf(plan).map(async ({ name, most, v1, v2 }) => {
      const one = await valueIn(places, v1, v2);
      return one !== undefined && one <= most
        ? []
        : [`the limit of ${name} is ${one === undefined ? "not set" : String(one)}, planned ${most}`];
    }),
  );
  return found.flat();
}

interface Limit {
  readonly name: string;
  readonly most: number;
  /** The controller and its file, for each version of the cgroups. */
  readonly v1: readonly [controller: string, file: string];
  readonly v2: string;
}

function limitsOf(plan: BoxPlan): readonly Limit[] {
  const { Memory = 0, PidsLimit, NanoCpus = 0 } = containerSpec(plan).HostConfig;
  return [
    { name: "memory", most: Memory, v1: ["memory", "memory.limit_in_bytes"], v2: "memory.max" },
    { name: "processes", most: PidsLimit ?? 0, v1: ["pids", "pids.max"], v2: "pids.max" },
    { name: "cpu", most: quotaOf(NanoCpus), v1: ["cpu", "cpu.cfs_quota_us"], v2: "cpu.max" },
  ];
}

interface Places {
  readonly unified: string | undefined;
  readonly byController: ReadonlyMap<string, string>;
}

/** Lines of `hierarchy:controllers:path`; a line without controllers is version 2. */
function placesIn(text: string, root: string): Places {
  const lines = text
    .split("\n")
    .map((line) => /^\d+:([^:]*):(\/.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, controllers = "", at = ""]) => ({ controllers, at }));
  const unified = lines.find(({ controllers }) => controllers === "");
  return {
    unified: unified === undefined ? undefined : path.join(root, unified.at),
    byController: new Map(
      lines.flatMap(({ controllers, at }) =>
        controllers
          .split(",")
          .filter((name) => name !== "" && !name.startsWith("name="))
          .map((name) => [name, path.join(root, name, at)] as const),
      ),
    ),
  };
}

/**
 * `max` and a negative number are no limits, and limits that are set on a folder above are not looked for: a box with
 * these is refused. A processor quota is converted to the usual period, which the plan uses.
 */
async function valueIn(
  { unified, byController }: Places,
  [controller, file]: Limit["v1"],
  v2: string,
): Promise<number | undefined> {
  const old = byController.get(controller);
  if (old === undefined && unified === undefined) return undefined;
  const text = await textOf(old === undefined ? path.join(unified ?? "", v2) : path.join(old, file));
  const [word = "", second = ""] = text.trim().split(" ");
  if (!/^\d+$/.test(word)) return undefined;
  const isTime = v2 === "cpu.max";
  const period = isTime && old !== undefined ? (await textOf(path.join(old, PERIOD_FILE))).trim() : second;
  return isTime && /^[1-9]\d*$/.test(period)
    ? Math.round((Number(word) * PERIOD) / Number(period))
    : Number(word);
}

const PERIOD_FILE = "cpu.cfs_period_us";

const textOf = (at: string): Promise<string> => readFile(at, "utf8").catch(() => "");
