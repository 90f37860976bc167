import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { ExecResult, OwnedBox } from "../src/core/ports.ts";
import { boxProcessors } from "../src/docker/container-spec.ts";
import { hostTrust } from "../src/docker/egress/host-trust.ts";
import { dockerExec, ground } from "./boxes.ts";
import { type Figure, inTurn, type Measured } from "./figure.ts";
import { HostSpawner } from "./host-spawn.ts";

const NEVER = new AbortController().signal;
const KEEP = { head: 64 * 1024, tail: 64 * 1024 };

async function elapsedMs(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function inBox(box: OwnedBox, words: readonly string[]): Promise<ExecResult> {
  const result = await box.exec({ words, timeoutMs: 120_000, keep: KEEP }, NEVER);
  if (result.exit_code !== 0) throw new Error(`${words.join(" ")} in the box: ${result.reason}`);
  return result;
}

async function execAgainstHost(part: number): Promise<Measured> {
  await using place = await ground();
  await using box = await place.startBox();
  using host = new HostSpawner();
  const work = (): Promise<number> => elapsedMs(() => inBox(box, ["/bin/true"]));
  return await inTurn(400, work, () => host.run(["/bin/true"]), part);
}

const ROW = 100;

async function execAgainstDocker(): Promise<Measured> {
  await using place = await ground();
  await using box = await place.startBox();
  const bare = await place.startBare();
  try {
    // After an exec the engine is busy for a while; the median of a series of calls avoids that time.
    const work = async (): Promise<number> => {
      const times: number[] = [];
      for (let call = 0; call < ROW; call += 1) times.push(await elapsedMs(() => inBox(box, ["/bin/true"])));
      return times.toSorted((one, other) => one - other)[ROW / 2] ?? Number.NaN;
    };
    return await inTurn(30, work, () => elapsedMs(() => dockerExec(bare, ["/bin/true"])));
  } finally {
    await bare.remove({ force: true });
  }
}

/** Time to a ready box or container; their removal is not included. */
async function ready(): Promise<Measured> {
  await using place = await ground();
  const work = async (): Promise<number> => {
    const start = performance.now();
    await using _ = await place.startBox();
    return performance.now() - start;
  };
  return await inTurn(21, work, async () => {
    const start = performance.now();
    const bare = await place.startBare();
    const time = performance.now() - start;
    await bare.remove({ force: true });
    return time;
  });
}

/** Compared with a box without a network: only its folder, certificates and proxy are extra. */
async function readyWithNetwork(names: readonly string[]): Promise<Measured> {
  await using place = await ground();
  const grants = names.map((host) => ({ host, ports: [], methods: null, private: false, origin: host }));
  const network = { grants, trust: () => hostTrust(process.env, () => undefined) };
  const started = async (wanted: { readonly network?: typeof network }): Promise<number> => {
    const start = performance.now();
    await using _ = await place.startBox(wanted);
    return performance.now() - start;
  };
  return await inTurn(
    21,
    () => started({ network }),
    () => started({}),
  );
}

const FLOOD = 1_000_000_000;
const MAX_GROWTH = 100 * 2 ** 20;

/**
 * Compared with the same bytes through a pipe to a reader that drops them, in a plain container with a box's
 * processors: any cap needs a reader.
 */
async function flood(): Promise<Measured> {
  await using place = await ground();
  await using box = await place.startBox();
  const bare = await place.startBare({ NanoCpus: boxProcessors(availableParallelism()) * 1e9 });
  try {
    const line = `head -c ${FLOOD} /dev/zero`;
    const work = async (): Promise<number> => {
      const rss = process.memoryUsage.rss();
      const time = await elapsedMs(async () => {
        const { stdout } = await inBox(box, ["sh", "-c", line]);
        if (stdout.total !== FLOOD) throw new Error(`${stdout.total} bytes came`);
      });
      const growth = process.memoryUsage.rss() - rss;
      if (growth > MAX_GROWTH) throw new Error(`sandbox.flood: memory grew by ${growth} bytes`);
      return time;
    };
    const piped = ["sh", "-c", `${line} | cat >/dev/null`];
    return await inTurn(5, work, () => elapsedMs(() => dockerExec(bare, piped)));
  } finally {
    await bare.remove({ force: true });
  }
}

async function parallel(): Promise<Measured> {
  await using place = await ground();
  await using box = await place.startBox();
  const calls = Array.from({ length: 20 }, () => () => inBox(box, ["/bin/true"]));
  const inARow = async (): Promise<void> => {
    for (const call of calls) await call();
  };
  const work = (): Promise<number> => elapsedMs(() => Promise.all(calls.map((call) => call())));
  return await inTurn(21, work, () => elapsedMs(inARow));
}

const OPENS = 1000;

/**
 * One program opens a thousand files, observed and unobserved; its start is not included. An observed open waits for
 * two context switches, so the lowest tenth of the runs counts, which had the processor to themselves.
 */
async function observedOpens(): Promise<Measured> {
  await using place = await ground();
  await using box = await place.startBox();
  const script = `import os, time
names = ["/tmp/%d" % each for each in range(${OPENS})]
for name in names: os.close(os.open(name, os.O_CREAT | os.O_RDONLY))
began = time.perf_counter()
for name in names: os.close(os.open(name, os.O_RDONLY))
print((time.perf_counter() - began) * 1000)`;
  const opened = async (more: { readonly observe?: { readonly canaries: [] } }): Promise<number> => {
    const words = ["python3", "-c", script];
    const { stdout } = await box.exec({ words, timeoutMs: 60_000, keep: KEEP, ...more }, NEVER);
    return Number(Buffer.from(stdout.head).toString());
  };
  return await inTurn(
    15,
    () => opened({ observe: { canaries: [] } }),
    () => opened({}),
    0.1,
  );
}

const UNITS_A_JOB = 8;

/** A C project: each unit is compiled and linked with its test, which then processes some thousand small texts. */
const makefile = (units: number): string => `test: $(patsubst %,run%,$(shell seq 1 ${units}))
run%: unit.c
	@cc -O1 -DUNIT=$* -o t$* unit.c && ./t$*
`;
const UNIT = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char name[32], text[64];
  unsigned long sum = UNIT;
  for (int round = 0; round < 200; round++) {
    snprintf(name, sizeof name, "f%d-%d", UNIT, round);
    FILE *out = fopen(name, "w");
    if (!out) return 1;
    for (int line = 0; line < 200; line++) fprintf(out, "%lu\\n", sum = sum * 6364136223846793005UL + 1);
    fclose(out);
    FILE *in = fopen(name, "r");
    int lines = 0;
    while (fgets(text, sizeof text, in)) lines += strlen(text) > 1;
    fclose(in);
    remove(name);
    if (lines != 200) return 1;
  }
  return 0;
}
`;

/**
 * Builds and runs a project's own tests in an existing box, compared with the same folder on the host. Both use
 * Debian's compiler here.
 */
async function suite(jobs: number): Promise<Measured> {
  await using place = await ground();
  await writeFile(path.join(place.workspace, "Makefile"), makefile(UNITS_A_JOB * jobs));
  await writeFile(path.join(place.workspace, "unit.c"), UNIT);
  await using box = await place.startBox();
  const here = promisify(execFile);
  const words = ["-s", `-j${jobs}`, "test"];
  return await inTurn(
    9,
    () => elapsedMs(() => inBox(box, ["make", ...words])),
    () => elapsedMs(() => here("make", words, { cwd: place.workspace })),
    // The lower quartile: other work on the machine may disturb either side.
    0.25,
  );
}

export const SANDBOX: readonly Figure[] = [
  {
    name: "sandbox.exec",
    unit: "ms",
    against: "spawning it on the host",
    hold: 1,
    measure: () => execAgainstHost(0.5),
  },
  {
    name: "sandbox.exec.p95",
    unit: "ms",
    against: "spawning it on the host",
    hold: 2,
    measure: () => execAgainstHost(0.95),
  },
  {
    name: "sandbox.exec-vs-docker",
    unit: "ms",
    against: "a docker exec per command",
    hold: 0.06,
    measure: execAgainstDocker,
  },
  {
    name: "sandbox.ready",
    unit: "ms",
    against: "a bare container's create and start",
    hold: 1.2,
    measure: ready,
  },
  {
    name: "sandbox.suite",
    unit: "ms for a suite of C",
    against: "the same on the host",
    hold: 1.1,
    measure: () => suite(1),
  },
  {
    name: "sandbox.suite.parallel",
    unit: "ms for a suite of C that keeps all processors busy",
    against: "the same on the host",
    hold: 1.1,
    measure: () => suite(availableParallelism()),
  },
  { name: "sandbox.observed", unit: "ms", against: "the same unobserved", hold: 10, measure: observedOpens },
  {
    name: "sandbox.ready-with-network",
    unit: "ms",
    against: "a box without one",
    hold: 1.1,
    measure: () => readyWithNetwork(["registry.test"]),
  },
  // For a session in which access may be granted later: nothing is granted yet.
  {
    name: "sandbox.ready-to-be-granted",
    unit: "ms",
    against: "a box without one",
    hold: 1.1,
    measure: () => readyWithNetwork([]),
  },
  {
    name: "sandbox.flood",
    unit: "ms",
    against: "the same bytes through a pipe in a bare container",
    hold: 1.5,
    measure: flood,
  },
  {
    name: "sandbox.parallel",
    unit: "ms",
    against: "the same one after the other",
    hold: 1,
    measure: parallel,
  },
];
