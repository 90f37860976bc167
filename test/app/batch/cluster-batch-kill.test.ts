// slow: it kills a batch at every request
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { flushCompileCache } from "node:module";
import path from "node:path";
import test from "node:test";
import { batchTotals } from "../../../src/render/batch-results.ts";
import { startFakeCluster } from "../../fakes/kubernetes-jobs.ts";
import { coordinate, rowsFor, said } from "../../fixtures/cluster-batch.ts";
import { scratch } from "../../fixtures/scratch.ts";

const ROWS = rowsFor(4);
const COORDINATOR = path.join(import.meta.dirname, "..", "..", "fixtures", "cluster-coordinator.ts");

// Each coordinator loads the same code as this process and would compile it again: it is killed before it stores anything.
flushCompileCache();

/** Requests of a whole batch that is not disturbed, so that each of them has a kill. */
const MOMENTS = 12;
/** Until its pods are made. */
const CERTAIN = 8;

for (let nth = 1; nth <= MOMENTS; nth += 1)
  for (const when of ["before", "after"] as const)
    test(
      `kill -9 of the coordinator ${when} request ${nth} is handled loses nothing and runs nothing twice`,
      { timeout: 60_000 },
      async (t) => {
        await using place = await scratch();
        await using cluster = await startFakeCluster((index) => said(ROWS[index]));
        const reached = Promise.withResolvers<void>();
        const killed = Promise.withResolvers<void>();
        cluster.faults.hold = (at) => {
          if (at.nth !== nth || at.when !== when) return undefined;
          reached.resolve();
          return killed.promise;
        };
        const config = place.at("kubeconfig");
        await writeFile(config, cluster.config);
        const child = spawn(process.execPath, [COORDINATOR, config, place.at("out"), String(ROWS.length)], {
          stdio: ["ignore", "ignore", "inherit"],
        });
        t.after(() => child.kill("SIGKILL"));
        const ended = once(child, "exit");
        await Promise.race([reached.promise, ended]);
        child.kill("SIGKILL");
        const [code, signal] = (await ended) as [number | null, string | null];
        // How often it looks while the last rows end differs: one that needs fewer requests than that has ended in peace.
        assert.ok(signal === "SIGKILL" || (code === 0 && nth > CERTAIN), `${code} ${signal}`);
        killed.resolve();
        cluster.faults.hold = () => undefined;
        const { end } = await coordinate({ cluster, rows: ROWS, folder: place.at("out"), resume: true });
        assert.deepEqual(
          [batchTotals(end).done, batchTotals(end).exit_code, cluster.jobs.size],
          [ROWS.length, 0, 1],
        );
        assert.deepEqual(
          cluster.ran.toSorted((a, b) => a.localeCompare(b)),
          ["0/0", "1/0", "2/0", "3/0"],
        );
        const kept = (await readFile(place.at("out/results.jsonl"), "utf8")).trimEnd().split("\n");
        assert.equal(kept.length, ROWS.length);
      },
    );
