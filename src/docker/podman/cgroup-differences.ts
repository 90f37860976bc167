import { readFile } from "node:fs/promises";
import path from "node:path";
import { type BoxPlan, containerSpec } from "../container-spec.ts";
import { PERIOD, quotaOf } from "./podman-spec.ts";

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
