import assert from "node:assert/strict";
import { chown, lstat, mkdir } from "node:fs/promises";
import test from "node:test";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { MODES } from "../../../src/core/decision.ts";
import {
  inspectedDifferences,
  type Inspected,
  reportDifferences,
} from "../../../src/docker/box/container-check.ts";
import { hostFacts, readSeccomp } from "../../../src/docker/engine.ts";
import { ownerLabels } from "../../../src/boxes/box-record.ts";
import { mountsOf, type BoxPlan, containerSpec } from "../../../src/docker/container-spec.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../../fixtures/engine.ts";
import { boxPlan } from "../../fixtures/boxes.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import type { BoxReport, SeenFile } from "../../../src/boxes/runner-report.ts";

/** Says of itself what the runner says. */
const REPORT = `
const { readFileSync, lstatSync } = require("node:fs");
const read = (file) => readFileSync(file, "utf8");
const stats = process.argv.slice(1).map((path) => { const { dev, ino } = lstatSync(path, { bigint: true });
  return { path, dev: String(dev), ino: String(ino) }; });
console.log(JSON.stringify({ status: read("/proc/self/status"), mountinfo: read("/proc/self/mountinfo"), stats,
  netdev: read("/proc/net/dev"), route: read("/proc/net/route"), rlimits: read("/proc/self/limits"),
  hostname: require("node:os").hostname() }));`;

async function planFor(mode: BoxPlan["mode"], place: Scratch): Promise<BoxPlan> {
  const repo = place.at("a,b\n: ä");
  const readOnly = [`${repo}/.git`, `${repo}/sub/.vscode`];
  for (const folder of readOnly) await mkdir(folder, { recursive: true });
  if (process.getuid?.() === 0) for (const path of [place.path, repo]) await chown(path, 1000, 1000);
  const plan: BoxPlan = {
    ...boxPlan(mode),
    image,
    workspace: { path: repo },
    readOnly,
    pinned: [`${repo}/sub`],
    host: await hostFacts(engine),
    seccomp: await readSeccomp(ROOT),
    labels: ownerLabels(64_324),
  };
  const paths = mountsOf(plan).map(({ Target }) => Target);
  return { ...plan, argv: ["node", "-e", REPORT, ...paths] };
}

async function seen(plan: BoxPlan): Promise<{ inspected: Inspected; report: BoxReport; host: SeenFile[] }> {
  const container = await engine.api.createContainer(containerSpec(plan));
  try {
    const inspected = (await container.inspect()) as unknown as Inspected;
    const stream = await container.attach({ stream: true, stdout: true });
    const stdout = new PassThrough();
    engine.api.modem.demuxStream(stream, stdout, stdout);
    stream.once("close", () => stdout.end());
    const answer = text(stdout);
    await container.start();
    const report = JSON.parse(await answer) as BoxReport;
    const host = mountsOf(plan).map(async ({ Target: path }) => {
      const { dev, ino } = await lstat(path, { bigint: true });
      return { path, dev: String(dev), ino: String(ino) };
    });
    return { inspected, report, host: await Promise.all(host) };
  } finally {
    await container.remove({ force: true });
  }
}

for (const mode of MODES)
  test(`a ${mode} box on this engine matches its plan, whatever its path is called`, { skip }, async () => {
    await using place = await scratch();
    const plan = await planFor(mode, place);
    const { inspected, report, host } = await seen(plan);
    assert.deepEqual(inspectedDifferences(plan, inspected), []);
    assert.deepEqual(reportDifferences(plan, report, host), []);
  });
