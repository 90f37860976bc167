import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../src/app/batch/cluster-trouble.ts";
import { Interrupted } from "../../../src/core/errors.ts";
import { batchTotals } from "../../../src/render/batch-results.ts";
import { type FakeCluster, startFakeCluster } from "../../fakes/kubernetes-jobs.ts";
import { statusOf } from "../../fakes/kubernetes-api.ts";
import { httpsStub, noCertificates } from "../../fixtures/https-stub.ts";
import { coordinate, rowsFor, said } from "../../fixtures/cluster-batch.ts";
import { scratch } from "../../fixtures/scratch.ts";

/** A batch on an API server that refuses, cuts and garbles for a while: nothing of it is an end of the batch. */

const ROWS = rowsFor(2);
const JOB = /^GET \/apis\/batch\/v1\/namespaces\/team\/jobs\//;

/** Answers like this to the first matching requests. */
function at(cluster: FakeCluster, fits: RegExp, answers: readonly { status: number; text: string }[]): void {
  const left = [...answers];
  cluster.faults.instead = (what) => (fits.test(what) ? left.shift() : undefined);
}

const refusal = (code: number, reason: string, message: string): { status: number; text: string } => ({
  status: code,
  text: JSON.stringify(statusOf(code, reason, message)),
});

const quotaMoved = refusal(
  409,
  "Conflict",
  'Operation cannot be fulfilled on resourcequotas "team": the object has been modified; please apply your changes to the latest version and try again',
);
const page = { status: 200, text: "<!doctype html><title>Sign in</title>" };
const expired = refusal(410, "Expired", "The provided continue parameter is too old");

const PASSING: Readonly<
  Record<string, readonly [fits: RegExp, answers: readonly { status: number; text: string }[]]>
> = {
  "a quota that is being counted when the Job is tried": [/^POST \S+\/jobs\?dryRun=All$/, [quotaMoved]],
  "a quota that is being counted when the Job is made": [/^POST \S+\/jobs$/, [quotaMoved, quotaMoved]],
  "a quota that is being counted when the rows are made": [/^POST \S+\/configmaps$/, [quotaMoved]],
  "a Job that is changed at the same time": [
    /^PATCH \S+\/jobs\//,
    [
      refusal(
        409,
        "Conflict",
        'Operation cannot be fulfilled on jobs.batch "x": the object has been modified; please apply your changes to the latest version and try again',
      ),
    ],
  ],
  "a page of a proxy instead of the Job": [JOB, [page, page]],
  "a page of a proxy instead of the pods": [/^GET \S+\/pods\?(?!.*watch=)/, [page]],
  "a page of a proxy instead of the watch": [/^GET \S+\/pods\?.*watch=/, [page]],
};

for (const [name, [fits, answers]] of Object.entries(PASSING))
  test(`${name} is asked again, and each row runs once`, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster((index) => said(ROWS[index]));
    at(cluster, fits, answers);
    const { end, results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
    assert.deepEqual([results.length, cluster.ran.length, batchTotals(end).exit_code], [2, 2, 0]);
  });

test("a list of pods whose next page is always too old is given up, not asked for ever", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  const first = { kind: "PodList", metadata: { resourceVersion: "1", continue: "next" }, items: [] };
  cluster.faults.instead = (what) => {
    if (!/^GET \S+\/pods\?(?!.*watch=)/.test(what)) return undefined;
    return what.includes("continue=") ? expired : { status: 200, text: JSON.stringify(first) };
  };
  await assert.rejects(coordinate({ cluster, rows: ROWS, folder: place.at("out") }), {
    exit: 6,
    message: /does not answer: .*too old/,
  });
});

for (const [name, play, row] of [
  ["failed", said(ROWS[0], 1, { cause: "check" }), ["check", 1, "session1"]],
  ["succeeded", said(ROWS[0]), [null, 0, "session1"]],
] as const)
  test(`a row that has ${name} is reported by the pod that ended, not by a second one that is created for it`, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster((index) => (index === 0 ? play : said(ROWS[index])));
    const repeated = { once: false };
    cluster.faults.hold = ({ nth, when }) => {
      const isOver = [...cluster.pods.values()].some(({ metadata, status }) => {
        const own = metadata?.labels?.["batch.kubernetes.io/job-completion-index"] === "0";
        return own && /^(?:Failed|Succeeded)$/.test(status?.phase ?? "");
      });
      if (when !== "before" || repeated.once || !isOver || !JOB.test(cluster.asked[nth - 1] ?? ""))
        return undefined;
      repeated.once = true;
      cluster.repeatPod(0);
      return undefined;
    };
    const { results } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
    const first = results.find((each) => each.row === 1);
    assert.deepEqual([repeated.once, first?.cause, first?.exit_code, first?.session], [true, ...row]);
  });

/** More looks at the Job than fit into ten minutes by the batch's clock, which are fifteen seconds apart. */
const LOOKS = 50;

test("a watch whose connection breaks after half an hour begins again, as on the first minute", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  const looks = { left: LOOKS };
  cluster.faults.instead = (what) => {
    if (JOB.test(what) && (looks.left -= 1) === 0) cluster.cutWatches();
    const again = looks.left <= 0 && what.includes("watch=");
    if (again) gate.resolve();
    return undefined;
  };
  const { end, warned } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
  assert.deepEqual([batchTotals(end).exit_code, cluster.ran.length], [0, 2]);
  assert.deepEqual(
    warned.filter((text) => /answer/.test(text)),
    [],
  );
});

/** Whoever sleeps is woken at once, and the time has passed. */
function leapingClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    sleep: async (ms, signal) => {
      now += ms;
      for (let turns = 0; turns < 5; turns += 1) await setImmediate();
      signal.throwIfAborted();
    },
    random: () => 0.5,
  };
}

test("pods that run between two looks count as running: a batch of short rows is not taken for one that stalls", async () => {
  await using place = await scratch();
  const tries = 100;
  const begin = { next: Promise.withResolvers<void>() };
  await using cluster = await startFakeCluster((_, attempt) => {
    if (attempt === tries) return said(ROWS[0]);
    begin.next = Promise.withResolvers<void>();
    return { ...said(ROWS[0], 5, { cause: "model" }), from: begin.next.promise };
  });
  // A pod begins and ends before each look, and the next one waits then.
  cluster.faults.hold = async ({ nth, when }) => {
    if (when !== "before" || cluster.asked[nth - 1]?.startsWith("GET /apis/batch") !== true) return;
    begin.next.resolve();
    for (let turns = 0; turns < 5; turns += 1) await setImmediate();
  };
  const { end } = await coordinate({
    cluster,
    rows: ROWS.slice(0, 1),
    folder: place.at("out"),
    plan: { jobs: 1, retries: tries },
    clock: leapingClock(),
  });
  assert.deepEqual([batchTotals(end).exit_code, cluster.ran.length], [0, tries + 1]);
});

test("Ctrl-C before the cluster has answered does not promise a batch that continues there", async () => {
  await using place = await scratch();
  const stop = new AbortController();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  cluster.faults.down = true;
  const { end, warned } = await coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    signal: stop.signal,
    onWarn: () => stop.abort(new Interrupted("SIGINT")),
  });
  assert.equal(batchTotals(end).exit_code, 130);
  assert.match(warned.join("\n"), /nothing was started in the cluster/);
  assert.doesNotMatch(warned.join("\n"), /continues in the cluster/);
  assert.equal(cluster.jobs.size, 0);
});

for (const [what, server, why] of [
  [
    "whose certificate nobody vouches for",
    (tls: number) => `https://127.0.0.1:${tls}`,
    "unable to verify the first certificate",
  ],
  [
    "that speaks no TLS",
    (_: number, plain: string) => plain.replace("http:", "https:"),
    "it does not speak TLS (EPROTO)",
  ],
] as const)
  test(`a cluster ${what} is not waited for`, { skip: noCertificates }, async () => {
    await using place = await scratch();
    await using cluster = await startFakeCluster();
    await using stub = await httpsStub(["cluster"], (_, response) => void response.end("{}"));
    const url = server(stub.port, cluster.url);
    const config = cluster.config
      .replace(cluster.url, url)
      .replace('"insecure-skip-tls-verify":true', '"tls-server-name":"cluster"');
    const warned: string[] = [];
    const asked = coordinate({
      cluster: { config },
      rows: ROWS,
      folder: place.at("out"),
      onWarn: (text) => void warned.push(text),
    });
    await assert.rejects(asked, {
      exit: 6,
      message: `what answers at ${url} is not the cluster of the kubeconfig: ${why}`,
    });
    assert.deepEqual(warned, []);
  });

for (const [code, reason] of [
  [403, "Forbidden"],
  [401, "Unauthorized"],
] as const)
  test(`a server that has just started and refuses for a moment (${code}) ends no batch`, async () => {
    await using place = await scratch();
    const gate = Promise.withResolvers<void>();
    await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
    // What is refused was allowed before.
    const left = { looks: 3, job: 2, watch: 1 };
    cluster.faults.instead = (what) => {
      const isLook = JOB.test(what) && (left.looks -= 1) < 0;
      if (isLook && (left.job -= 1) >= 0) {
        cluster.cutWatches();
        return refusal(code, reason, "jobs is forbidden: not yet");
      }
      if (left.looks >= 0 || !what.includes("watch=")) return undefined;
      if ((left.watch -= 1) >= 0) return refusal(code, reason, "pods is forbidden: not yet");
      gate.resolve();
      return undefined;
    };
    const { end, warned } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
    assert.deepEqual([batchTotals(end).exit_code, cluster.ran.length], [0, 2]);
    assert.match(
      warned.join("\n"),
      /the cluster refuses what it allowed before \((?:jobs|pods) is forbidden: not yet\)/,
    );
  });

test("a right that is missing from the beginning is reported at once", async () => {
  await using place = await scratch();
  await using cluster = await startFakeCluster((index) => said(ROWS[index]));
  cluster.faults.instead = (what) =>
    /^GET \S+\/pods\?/.test(what) ? refusal(403, "Forbidden", "pods is forbidden") : undefined;
  const warned: string[] = [];
  const asked = coordinate({
    cluster,
    rows: ROWS,
    folder: place.at("out"),
    onWarn: (text) => void warned.push(text),
  });
  await assert.rejects(asked, { exit: 2, message: "the cluster forbids it: pods is forbidden" });
  assert.equal(warned.filter((text) => /refuses|does not answer/.test(text)).length, 0);
});

test("an outage is reported once, though the watch and the looks at the Job both meet it", async () => {
  await using place = await scratch();
  const gate = Promise.withResolvers<void>();
  await using cluster = await startFakeCluster((index) => ({ ...said(ROWS[index]), until: gate.promise }));
  const met = { job: -3, watch: 0 };
  cluster.faults.instead = (what) => {
    const kind = JOB.test(what) ? "job" : what.includes("watch=") ? "watch" : undefined;
    if (kind === undefined || (kind === "watch" && met.job < 0)) return undefined;
    met[kind] += 1;
    if (kind === "job" && met.job === 0) cluster.cutWatches();
    // Each has met it, and has asked again.
    if (met.job >= 2 && met.watch >= 2) gate.resolve();
    return met.job < 0 || (met.job > 2 && met.watch > 2) ? undefined : refusal(503, "", "not now");
  };
  const { warned } = await coordinate({ cluster, rows: ROWS, folder: place.at("out") });
  assert.deepEqual(
    warned.slice(1).map((text) => text.replace(/;.*/, "")),
    ["the cluster does not answer (not now)", "the cluster answers again"],
  );
});
