import { readFile } from "node:fs/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { runHost } from "./run.ts";

interface InstallRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}

/** Installs packages of the distribution, as root on Debian or Ubuntu. */
async function aptInstall(packages: readonly string[], request: InstallRequest): Promise<void> {
  const env = { ...request.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
  const wait = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2"];
  const update = await runHost(["apt-get", ...wait, "update"], { ...request, env });
  const install = await runHost(
    ["apt-get", ...wait, "install", "-y", "--no-install-recommends", ...packages],
    {
      ...request,
      env,
    },
  );
  if (install.code === 0) return;
  const why = [...(update.code === 0 ? [] : update.tail.slice(-3)), ...install.tail.slice(-3)].join("\n    ");
  const remedy = `apt-get update && apt-get install -y ${packages.join(" ")}, then ./start.sh again`;
  throw new HarnessError(EXIT.sandbox, `${packages.join(" ")} could not be installed:\n    ${why}`, remedy);
}

/** The distribution's engine, and the control groups it needs where nothing has mounted them. */
export async function installEngine(request: InstallRequest): Promise<void> {
  const mounts = await readFile("/proc/mounts", "utf8").catch(() => "");
  const grouped = /^\S+ \S+ cgroup2? /m.test(mounts);
  await aptInstall(["docker.io", ...(grouped ? [] : ["cgroupfs-mount"])], request);
  if (!grouped) await runHost(["cgroupfs-mount"], request);
}
