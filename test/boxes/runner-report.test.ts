import assert from "node:assert/strict";
import test from "node:test";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { decodeFields, REPLY, REQUEST } from "../../src/boxes/runner-protocol.ts";
import { KEY, scriptedRunner } from "./scripted-runner.ts";
import { askReport } from "../../src/boxes/runner-report.ts";

test("the box's report has its texts of /proc and each path that it could see", async () => {
  const { stream, request, reply } = scriptedRunner();
  const asking = askReport(new RunnerClient(stream, KEY), ["/repo", "/a:b\nc\uDCFF"]);
  const { call, payload } = await request(REQUEST.hello);
  const asked = decodeFields(payload).map(({ name, bytes }) => [name, bytes.toString("latin1")]);
  assert.deepEqual(asked, [
    ["p", "/repo"],
    ["p", "/a:b\nc\u00FF"],
  ]);
  reply(REPLY.hello, call, [
    ["s", "status"],
    ["m", "mounts"],
    ["n", "net"],
    ["r", "route"],
    ["l", "limits"],
    ["h", "sandbox\n"],
    ["f", "18446744073709551615:2:40755:/repo"],
    ["f", "1:3:100644:/a:b\nc\uDCFF"],
    ["f", "-:2:/gone"],
    ["f", "nonsense"],
  ]);
  const { stats, ...texts } = await asking;
  assert.deepEqual(texts, {
    status: "status",
    mountinfo: "mounts",
    netdev: "net",
    route: "route",
    rlimits: "limits",
    hostname: "sandbox",
  });
  assert.deepEqual(stats, [
    { path: "/repo", dev: "18446744073709551615", ino: "2", mode: 0o40755 },
    { path: "/a:b\nc\uDCFF", dev: "1", ino: "3", mode: 0o100644 },
  ]);
});

test("missing parts of a report are empty, so they match no plan", async () => {
  const { stream, request, reply } = scriptedRunner();
  const asking = askReport(new RunnerClient(stream, KEY), []);
  reply(REPLY.hello, (await request(REQUEST.hello)).call);
  const { stats, ...texts } = await asking;
  assert.deepEqual([stats, new Set(Object.values(texts))], [[], new Set([""])]);
});
