import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { HarnessError } from "../../src/core/errors.ts";
import { type PushedImage, pushImage } from "../../src/docker/push-image.ts";
import { makeCertificates } from "../fixtures/https-stub.ts";
import { image } from "../fixtures/engine.ts";
import { farDocker, type Machines, startMachines } from "./machines.ts";

/** An engine trusts any registry on loopback; which others it trusts shows only with a registry on another machine. */
const REGISTRY = "10.213.77.1:5000";

async function registryOnNear({ place, stays }: Machines): Promise<AsyncDisposable> {
  await mkdir(place.at("registry/data"), { recursive: true });
  makeCertificates(place.at("registry"), ["IP:10.213.77.1"]);
  const [certificate, key] = [place.at("registry/own.pem"), place.at("registry/own.key")];
  const config = {
    version: 0.1,
    storage: { filesystem: { rootdirectory: place.at("registry/data") } },
    http: { addr: REGISTRY, tls: { certificate, key } },
  };
  const file = await place.write("registry/config.json", JSON.stringify(config));
  const program = path.join(process.env["HARNESS_TEST_SSHD"] ?? "", "usr/bin/docker-registry");
  const child = stays([program, "serve", file]);
  child.stdout?.resume();
  child.stderr?.resume();
  return {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

test("an engine pushes to a registry with a private certificate authority once the authority is given to it", async (t) => {
  await using machines = await startMachines();
  const { place, engine, onLine } = machines;
  const trusted = farDocker(place);
  if (trusted === undefined) return t.skip("there is no /etc/docker here that a folder could stand for");
  await using _ = await registryOnNear(machines);
  const patience = AbortSignal.timeout(30_000);
  while (onLine(`ss -ltn | grep -c ${REGISTRY} || true`).trim() === "0") {
    if (patience.aborted) assert.fail("the registry does not come up");
    await sleep(100);
  }
  const push = (): Promise<PushedImage> =>
    pushImage(engine, {
      image,
      repository: `${REGISTRY}/team/env`,
      tag: "k1",
      login: { kind: "none" },
      onLine: () => undefined,
      signal: new AbortController().signal,
    });
  await assert.rejects(push(), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.match(thrown.message, /: not trusted: .*x509/);
    assert.match(thrown.remedy, /\/etc\/docker\/certs\.d\/10\.213\.77\.1:5000\/ca\.crt/);
    return true;
  });
  const folder = path.join(trusted, "certs.d", REGISTRY);
  await mkdir(folder, { recursive: true });
  await cp(place.at("registry/ca.pem"), path.join(folder, "ca.crt"));
  const { digest, moved } = await push();
  assert.ok(moved > 0);
  assert.deepEqual(await push(), { digest, moved: 0 });
});
