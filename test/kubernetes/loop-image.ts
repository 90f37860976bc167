import { execFileSync, type ExecFileSyncOptionsWithStringEncoding } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT } from "../fixtures/engine.ts";

/** The image of a batch's loop, built from its Dockerfile and removed at the end of its scope. */
export interface LoopImage extends AsyncDisposable {
  readonly name: string;
}

/** `authority`: certificate in PEM of the authority for repository hosts, as a company has its own. */
export function loopImage(authority: string): LoopImage {
  const folder = mkdtempSync(path.join(tmpdir(), "harness-loop-"));
  const said: ExecFileSyncOptionsWithStringEncoding = {
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
  };
  const name = `harness-test-loop:${randomBytes(6).toString("hex")}`;
  const build = (at: string, base: string, tag: string): void => {
    const words = ["build", "-q", "-f", path.join(at, "Dockerfile.loop"), "--build-arg", `BASE=${base}`];
    execFileSync("docker", [...words, "-t", tag, at], {
      ...said,
      env: { ...process.env, DOCKER_BUILDKIT: "0" },
    });
  };
  try {
    const packed = execFileSync(
      "npm",
      ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder],
      { ...said, cwd: ROOT },
    ).trim();
    const install = [
      "install",
      "--omit=dev",
      "--ignore-scripts",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
    ];
    execFileSync("npm", [...install, "--prefix", folder, path.join(folder, packed)], said);
    copyFileSync(
      path.join(ROOT, "examples/kubernetes/Dockerfile.loop"),
      path.join(folder, "Dockerfile.loop"),
    );
    build(folder, image, `${name}-bare`);
    const own = path.join(folder, "own");
    execFileSync("mkdir", [own]);
    writeFileSync(path.join(own, "authority.pem"), authority);
    writeFileSync(
      path.join(own, "Dockerfile.loop"),
      "ARG BASE\nFROM ${BASE}\nUSER root\nCOPY authority.pem /tmp/\nRUN cat /tmp/authority.pem >> /etc/ssl/certs/ca-certificates.crt\nUSER 1000:1000\n",
    );
    build(own, `${name}-bare`, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
  return {
    name,
    [Symbol.asyncDispose]: async () => {
      for (const tag of [name, `${name}-bare`])
        await engine.api
          .getImage(tag)
          .remove({ force: true })
          .catch(() => undefined);
    },
  };
}
