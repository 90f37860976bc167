/**
 * `npm run test:s3 [-- FILE…]`: tests reading and writing buckets on a real S3 server (MinIO) on this machine's
 * loopback. Run by hand, apart from the tests: the server is built once from Go modules, with Go's own client. Exits
 * with 2 if there can be no server, with 1 if something is wrong.
 */
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { reasonOf } from "../../src/core/errors.ts";
import { noCertificates } from "../fixtures/https-stub.ts";
import { runSuites, say } from "../fixtures/real-suite.ts";
import type { Run } from "../kubernetes/cluster-build.ts";
import { isKept, kept, onceBuilt } from "../kubernetes/cluster-cache.ts";

const VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c";
const MODULE = `github.com/minio/minio@${VERSION}`;
const FOLDER = `minio-${VERSION}-1`;

async function build(place: string, run: Run): Promise<void> {
  const bin = path.join(place, "bin");
  await mkdir(bin);
  const env = { GOBIN: bin, GOFLAGS: "", GOWORK: "off", CGO_ENABLED: "0" };
  await run(["nice", "-n", "10", "go", "install", "-trimpath", "-ldflags", "-s -w", MODULE], place, env);
  await writeFile(path.join(bin, "version"), `${VERSION}\n`);
}

/** The program's path, or why there is none. */
async function program(): Promise<{ readonly file: string } | { readonly none: string }> {
  if (process.platform !== "linux") return { none: "it was tried on Linux alone" };
  if (noCertificates !== false) return { none: noCertificates };
  try {
    if (!isKept(FOLDER) && spawnSync("go", ["version"]).status !== 0)
      return { none: "the server is built by Go, and there is no program go" };
    await onceBuilt(FOLDER, { build, say, what: `${MODULE}, some ten minutes of two cores,` });
    return { file: path.join(kept(FOLDER), "minio") };
  } catch (thrown) {
    return { none: `it could not be built: ${reasonOf(thrown)}` };
  }
}

const found = await program();
if ("none" in found) {
  say(`no server of S3 here: ${found.none}`);
  process.exitCode = 2;
} else {
  const env = { HARNESS_TEST_MINIO: found.file };
  process.exitCode = await runSuites(import.meta.dirname, env, process.argv.slice(2));
}
