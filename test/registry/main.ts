/**
 * `npm run test:registry [-- FILE…]`: pushes to a real image registry (the distribution's docker-registry) on this
 * machine's loopback, with its logins and its failures. Run by hand, apart from the tests. Exits with 2 if there can be
 * no such registry, with 1 if something is wrong.
 */
import path from "node:path";
import { skip } from "../fixtures/engine.ts";
import { noCertificates } from "../fixtures/https-stub.ts";
import { runSuites, say, unpacked } from "../fixtures/real-suite.ts";

const why = skip || noCertificates;
const found =
  why === false
    ? await unpacked("docker-registry-2", ["docker-registry", "golang-docker-credential-helpers"])
    : { none: why };
if ("none" in found) {
  say(`no registry here: ${found.none}`);
  process.exitCode = 2;
} else {
  const env = {
    HARNESS_TEST_REGISTRY: path.join(found.folder, "usr/bin/docker-registry"),
    HARNESS_TEST_HELPERS: path.join(found.folder, "usr/bin"),
  };
  process.exitCode = await runSuites(import.meta.dirname, env, process.argv.slice(2));
}
