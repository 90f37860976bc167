import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

/**
 * Runs the suites of the box on Podman instead of Docker: those named after `--`, or all that are known to pass there.
 */

const SUITES = [
  "test/docker/box/podman.engine.test.ts",
  "test/contract/box-docker.engine.test.ts",
  ..."granted kernel leaks limits limits-floods"
    .split(" ")
    .map((name) => `test/escape/${name}.engine.test.ts`),
  ..."canaries commit kept-file".split(" ").map((name) => `test/docker/box/${name}.engine.test.ts`),
];

process.env["HARNESS_TEST_PODMAN"] = "1";
const { noPodman, podmanEngine } = await import("./fixtures/podman-engine.ts");

if (noPodman !== false) {
  process.stdout.write(`skipped: ${noPodman}\n`);
} else {
  await using podman = await podmanEngine();
  const named = process.argv.slice(2);
  const root = path.join(import.meta.dirname, "..");
  const words = [path.join(root, "test/run.ts"), ...(named.length > 0 ? named : SUITES)];
  const env = { ...process.env, DOCKER_HOST: podman.host };
  const suites = spawn(process.execPath, words, { cwd: root, env, stdio: "inherit" });
  const [code] = (await once(suites, "exit")) as [number | null];
  process.exitCode = code ?? 1;
  if (code !== 0) process.stdout.write(`${await podman.state()}\n`);
}
