import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import test from "node:test";
import { type Attack, attackScript, judgeAttack, readAnswers } from "../../../src/docker/attack/attack.ts";
import { ATTACKS, changedSince, makeAttackTarget } from "../../../src/docker/attack/battery.ts";
import { unlocked } from "../../escape/unlocked.ts";
import { runProgram } from "../../fixtures/cli.ts";
import { skip } from "../../fixtures/engine.ts";
import { scratch } from "../../fixtures/scratch.ts";

interface Report {
  readonly ok: boolean;
  readonly attacks: readonly {
    readonly id: string;
    readonly state: string;
    readonly why: readonly string[];
  }[];
}

test("on this machine every attack fails, every twin works, and nothing is left", { skip }, async () => {
  await using home = await scratch();
  const env = { HARNESS_TEST_SECRET: "a-value-of-the-users" };
  const { code, stdout } = await runProgram("bin/harness", ["doctor", "--attack", "--json"], {
    home: home.path,
    env,
  });
  const report = JSON.parse(stdout) as Report;
  assert.deepEqual(
    report.attacks.filter(({ state }) => state !== "held"),
    [],
  );
  assert.deepEqual([code, report.ok, report.attacks.length], [0, true, ATTACKS.length]);
  assert.ok(report.attacks.length >= 35);
});

/** Attacks that are not refused by the box itself, or that cannot be shown to succeed elsewhere. */
const NOT_IN_A_CONTAINER: ReadonlyMap<string, string> = new Map([
  ["others.signals", "the kernel keeps everybody from stopping the first process of a namespace from inside"],
  ["honest.terminal", "a container without a terminal has none, whatever else it may"],
  ["limits.output", "it is the runner that cuts"],
]);

const LOOSE = {
  CapAdd: [..."ADMIN PTRACE NICE TIME CHROOT".split(" ").map((name) => `SYS_${name}`), "DAC_READ_SEARCH"],
  SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
  MaskedPaths: [],
  ReadonlyPaths: [],
  NetworkMode: "host",
  Memory: 2 ** 30,
  MemorySwap: 2 ** 30,
  PidsLimit: 1024,
};

const LEAKED = { LEAKED_KEY: "a-value-of-the-users" };

const each = (folder: string): string =>
  `export LEAKED_KEY=${LEAKED.LEAKED_KEY}; for f in ${folder}; do echo "== \${f##*/}"; timeout 15 sh $f; done`;

test("without the protections every attack goes through", { skip }, async () => {
  await using target = await makeAttackTarget("/tmp", null);
  await using place = await scratch();
  const socket = createServer().listen(place.at("engine.sock"));
  await using _ = {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void socket.close(() => resolve())),
  };
  await once(socket, "listening");
  const tried = ATTACKS.filter(({ id }) => !NOT_IN_A_CONTAINER.has(id));
  for (const attack of tried) await place.write(`attacks/${attack.id}`, target.filled(scriptOf(attack)));
  const before = await target.look(true);
  const root = target.filled("{W}/..");
  const binds = [
    ...[root, place.path, "/sys/fs/cgroup"].map((folder) => `${folder}:${folder}`),
    `${place.at("engine.sock")}:/var/run/docker.sock`,
    "/dev/null:/dev/mem",
  ];
  const attacked = (): Promise<string> =>
    unlocked(each(place.at("attacks/*")), { ...LOOSE, Binds: binds }, 180);
  let said = await attacked();
  // What waits a moment for a connection waits in vain where everybody computes.
  for (let tries = 1; tries < 3 && target.visits() === 0; tries += 1) said = await attacked();
  // Nothing but two files is read where processes of the host could be reached.
  const seen = await unlocked(each(place.at("attacks/others.seen")), { PidMode: "host", Binds: binds });
  const changed = changedSince(before, await target.look(true));
  assert.ok(target.visits() > 0);
  const nothing = { answers: [], cause: null, lost: null };
  const states = tried.map((attack) => {
    const text =
      (attack.id === "others.seen" ? seen : said).split(`== ${attack.id}\n`)[1]?.split("\n== ")[0] ?? "";
    const answers =
      attack.asks?.interpret({ text, kept: text.length, total: text.length }, { env: LEAKED }) ??
      readAnswers(text);
    const { state } = judgeAttack(attack, {
      tried: { ...nothing, answers },
      twin: nothing,
      changed: attack.counts === "host" ? changed : [],
      ownKernel: false,
    });
    return `${attack.id} ${state}`;
  });
  assert.deepEqual(
    states,
    tried.map(({ id }) => `${id} broken`),
  );
});

function scriptOf({ first, attempts, asks }: Attack): string {
  const before = first === undefined ? "" : `(cd {W}\n${first}\n)\n`;
  return `${before}${asks === undefined ? attackScript(attempts) : asks.run}`;
}
