import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseGrant } from "../../../src/core/network.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import type { NetworkRequest } from "../../../src/docker/egress/box-network.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { foundAt } from "../../fixtures/https-stub.ts";
import { boxesOver } from "../../fixtures/standing-boxes.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { openBox, type Opened } from "../box/open-box.ts";
import { startHttp } from "../../fakes/loopback.ts";

const server = await startHttp((_, response) => response.end("hello\n"));
after(() => server[Symbol.asyncDispose]());

function granted(trust: string): NetworkRequest {
  const { port } = server;
  const grants = [parseGrant("plain.test:80:private")];
  return { grants, trust: () => Promise.resolve(trust), ...foundAt(port) };
}

const MINUTE = 60_000;
const KEPT: Partial<BoxRequest> = { isolation: "bind", keep: "session-1", parks: MINUTE };
const GET = "curl -sS --max-time 20 http://plain.test/";
const COUNTING = `while :; do ${GET} >>/tmp/heard 2>&1; sleep 0.2; done`;

async function sourceOf(workspace: string): Promise<string> {
  const [id = ""] = await boxesOver(workspace);
  const { HostConfig } = await engine.api.getContainer(id).inspect();
  return HostConfig.Mounts?.find(({ Target }) => Target === "/run/harness")?.Source ?? "";
}

/** Parks a box in which a job asks again and again; the folder of its network. */
async function parked(place: Scratch): Promise<string> {
  await place.write("w/a.txt", "a\n");
  await using opened = await openBox(place, { ...KEPT, network: granted("one\n") });
  const { box, sh } = opened;
  box.start({ words: ["bash", "-c", COUNTING], timeoutMs: 0, keep: { head: 64, tail: 64 }, name: "j1" });
  assert.equal(await sh(GET), "hello\n");
  const source = await sourceOf(box.workspace);
  const handle = await box.park?.();
  await handle?.freeze();
  assert.ok(existsSync(path.join(source, "ca.pem")), "its folder stays");
  assert.equal(existsSync(path.join(source, "egress.sock")), false, "nobody listens for it");
  return source;
}

const takeUp = (place: Scratch, network?: NetworkRequest): Promise<Opened> =>
  openBox(place, { ...KEPT, takesUp: Date.now() + MINUTE, ...(network === undefined ? {} : { network }) });

test(
  "a frozen box continues with the proxy of the process that takes it up, in the same folder",
  { skip },
  async () => {
    await using place = await scratch();
    const source = await parked(place);
    {
      await using taken = await takeUp(place, granted("two\n"));
      assert.deepEqual(taken.warnings, []);
      assert.ok(taken.box.kept?.has("j1"));
      assert.equal(await sourceOf(taken.box.workspace), source);
      assert.equal(await taken.sh(GET), "hello\n");
      assert.equal(readFileSync(path.join(source, "ca.pem"), "utf8"), "two\n");
      const heard = (): Promise<string> => taken.sh("grep -c hello /tmp/heard");
      const before = Number(await heard());
      for (let looks = 0; Number(await heard()) <= before; looks += 1) {
        assert.ok(looks < 100, "the job reaches nothing any more");
        await sleep(100);
      }
      assert.equal(await taken.sh("curl -sS -o /dev/null -w '%{http_code}' http://elsewhere.test/"), "403");
    }
    assert.equal(existsSync(source), false);
  },
);

test(
  "with nothing granted any more or its folder gone, a new box continues with the reason",
  { skip },
  async () => {
    await using place = await scratch();
    await parked(place);
    {
      await using taken = await takeUp(place);
      assert.match(
        taken.warnings.join("\n"),
        /it has a network, but none is granted now\. A new one continues/,
      );
      assert.equal(taken.box.network, undefined);
      assert.equal(await taken.sh("ls /tmp/heard 2>/dev/null || true"), "");
    }
    const source = await parked(place);
    rmSync(source, { recursive: true });
    await using taken = await takeUp(place, granted("three\n"));
    assert.match(taken.warnings.join("\n"), /its connection to the network is gone\. A new one continues/);
    assert.equal(await taken.sh(GET), "hello\n");
  },
);
