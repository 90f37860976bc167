/**
 * `npm run test:ssh [-- FILE…]`: tests boxes of an engine on another machine, as far as that can be simulated here,
 * over the system's ssh and a real sshd. Run by hand, apart from the tests, as root. Exits with 2 if there can be no
 * such machine, with 1 if something is wrong.
 */
import { spawnSync } from "node:child_process";
import { skip } from "../fixtures/engine.ts";
import { noCertificates } from "../fixtures/https-stub.ts";
import { runSuites, say, unpacked } from "../fixtures/real-suite.ts";

const WANTED = ["unshare", "nsenter", "ip", "dockerd", "docker", "ssh", "ssh-keygen", "ssh-keyscan"];

function whyNot(): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "only root of a Linux can make machines of namespaces";
  const lacking = WANTED.filter((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0);
  if (lacking.length > 0) return `there is no ${lacking.join(", ")}`;
  return skip || noCertificates;
}

const why = whyNot();
const found =
  why === false
    ? await unpacked("openssh-server-2", ["openssh-server", "libwrap0", "docker-registry"])
    : { none: why };
if ("none" in found) {
  say(`no machine with an engine here: ${found.none}`);
  process.exitCode = 2;
} else {
  const env = { HARNESS_TEST_SSHD: found.folder };
  process.exitCode = await runSuites(import.meta.dirname, env, process.argv.slice(2));
}
