// also slow: a kill in the middle of applying
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgentEvent } from "../../src/core/events.ts";
import { noOverlay } from "../docker/box/open-box.ts";
import { engine } from "../fixtures/engine-api.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { household } from "./box-command.ts";
import {
  type AskedChat,
  eventsOf,
  finishedOf,
  harness,
  type Model,
  type Ran,
  type RunStart,
  startModel,
} from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";
import { slowTest } from "../fixtures/slow-test.ts";

type Step = string | (() => string | Promise<string>);
/** The model says nothing more. */
const HANGS = "the model hangs";

/** What each candidate does, in the order in which they begin: shell lines, one a turn, and then an answer. */
type Does = readonly (readonly Step[])[];

/** Candidates are distinguished by their temperature. */
function candidatesModel(does: Does): Promise<Model> {
  const begun: unknown[] = [];
  return startModel(async (chat: AskedChat) => {
    const { options } = chat as AskedChat & { readonly options?: { readonly temperature?: number } };
    const mark = options?.temperature;
    if (!begun.includes(mark)) begun.push(mark);
    const step = does[begun.indexOf(mark)]?.[resultsIn(chat).length];
    const line = typeof step === "function" ? await step() : step;
    if (line === HANGS) return "hang";
    return line === undefined
      ? { text: `Asked with ${mark ?? "nothing"}.`, tokens: [100, 10] }
      : { calls: [["bash", { command: line }]], tokens: [100, 10] };
  });
}

interface Attempts {
  readonly does: Does;
  readonly flags?: readonly string[];
  readonly start?: RunStart;
}

async function attempts(place: Scratch, { does, flags = [], start = {} }: Attempts): Promise<Ran> {
  await using model = await candidatesModel(does);
  return await harness(
    place,
    ["run", "--json", "--attempts", "3", ...flags, ...model.flags, "mend it"],
    start,
  );
}

const layersFolder = (place: Scratch): string => place.at(".local/state/harness/layers");

/** Nothing is left but the layers of these sessions, and they are whole. */
async function assertLeft(place: Scratch, sessions: readonly string[]): Promise<void> {
  assert.deepEqual(await boxesOver(place.at("work")), []);
  const layers = await readdir(layersFolder(place)).catch(() => []);
  assert.deepEqual(new Set(layers), new Set(sessions));
  const { Volumes } = await engine.api.listVolumes();
  const own = (Volumes ?? []).filter(({ Labels, Options }) =>
    JSON.stringify([Labels, Options]).includes(place.path),
  );
  assert.deepEqual(own, []);
}

const toldOf = (ran: Ran) =>
  (finishedOf(ran).attempts ?? []).map(({ status, exit_code, applied }) => [status, exit_code, applied]);
const sessionsOf = (ran: Ran): readonly string[] =>
  (finishedOf(ran).attempts ?? []).map(({ session }) => session);

/** It changes something and does not come to a good end: what it reads last is refused. */
const WRONG = ["echo wrong >b; echo wrong >>a", "cat ~/.ssh/id_rsa"];
const RIGHT = ["echo right >>a; mkdir d; echo new >d/new"];
/** It looks and changes nothing. */
const LOOKED = ["cat a"];

const PROJECT = {
  "package.json": '{"scripts": {"test": "sh test/a.test.sh"}}',
  "test/a.test.sh": "grep -q right a\n",
  a: "1\n",
};
const BENT = ["echo true >test/a.test.sh; echo more >>a"];

for (const flags of [["--check", "npm test"], []])
  test(
    `a candidate that tampered with its check is not taken, the check ${flags.length === 0 ? "found" : "named"}`,
    { skip: noOverlay },
    async () => {
      await using place = await household(PROJECT);
      const ran = await attempts(place, { does: [BENT, ["echo right >>a"]], flags });
      assert.deepEqual(
        toldOf(ran),
        [
          ["failed", 1, false],
          ["done", 0, true],
        ],
        ran.stderr,
      );
      const reason = finishedOf(ran).attempts?.[0]?.reason ?? "";
      assert.match(
        reason,
        /succeeds, but is not the check that it was: test\/a\.test\.sh was made to succeed/,
      );
      assert.deepEqual(finishedOf(ran).changes?.modified, ["a"]);
    },
  );

test(
  "after a wrong and a right candidate the second is applied and can be undone, the first keeps its session, and the third does not start",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const before = pictureOf(place.at("work"));
    const ran = await attempts(place, { does: [WRONG, RIGHT, RIGHT] });
    const whole = finishedOf(ran);
    const [first = "", second = ""] = sessionsOf(ran);
    assert.deepEqual([ran.code, whole.status, whole.session], [0, "done", second], ran.stderr);
    assert.deepEqual(toldOf(ran), [
      ["refused", 4, false],
      ["done", 0, true],
    ]);
    assert.deepEqual(whole.changes, { added: ["d/new"], modified: ["a"], deleted: [], ignored: 0 });
    assert.equal(
      whole.reason,
      `2 of 3 candidates: the second changed something, and no check was run; applied; the other: harness diff ${first}`,
    );
    assert.deepEqual([whole.answer, whole.turns, whole.usage.prompt_tokens], ["Asked with 0.5.", 5, 500]);
    assert.equal(await place.read("work/a"), "1\nright\n");
    assert.equal(existsSync(place.at("work/b")), false);
    await assertLeft(place, [first]);

    const kept = await harness(place, ["diff", first]);
    assert.match(kept.stdout, /^\+wrong$/m);
    const undone = await harness(place, ["undo"]);
    assert.deepEqual([undone.code, pictureOf(place.at("work"))], [0, before], undone.stderr);
    const other = await harness(place, ["apply", first]);
    assert.deepEqual([other.code, await place.read("work/b")], [0, "wrong\n"], other.stderr);
    await assertLeft(place, []);
  },
);

const CHECK = ["--check", "grep -q right a || { echo no right in a; exit 3; }"];
const UNPROVED = ["echo wrong >>a; echo wrong >b"];

test(
  "a candidate that fails the check is not applied, whatever its model says, and one that passes is",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const before = pictureOf(place.at("work"));
    const none = await attempts(place, { does: [UNPROVED, UNPROVED, UNPROVED], flags: CHECK });
    assert.deepEqual([none.code, pictureOf(place.at("work"))], [1, before], none.stderr);
    assert.deepEqual(
      finishedOf(none).attempts?.map(({ verified }) => verified?.exit_code),
      [3, 3, 3],
    );
    assert.equal(finishedOf(none).verified?.exit_code, 3);
    for (const { reason } of finishedOf(none).attempts ?? []) assert.match(reason, /no right in a/);
    await using other = await household({ a: "1\n" });
    const ran = await attempts(other, { does: [UNPROVED, RIGHT], flags: CHECK });
    const { verified, reason } = finishedOf(ran);
    assert.deepEqual([ran.code, verified?.exit_code], [0, 0], ran.stderr);
    assert.match(reason, /^2 of 3 candidates: the second passed `grep -q right a .*applied/);
    assert.deepEqual([await other.read("work/a"), existsSync(other.at("work/b"))], ["1\nright\n", false]);
    const without = await attempts(other, { does: [UNPROVED], flags: ["--no-verify"] });
    assert.deepEqual([without.code, finishedOf(without).verified], [0, null], without.stderr);
  },
);

test(
  "each event names its candidate, and there is one end of the whole run",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const ran = await attempts(place, { does: [WRONG, RIGHT] });
    const events = eventsOf(ran);
    const of = (candidate: number | undefined): readonly AgentEvent[] =>
      events.filter((event) => event.candidate === candidate);
    assert.deepEqual([...of(1), ...of(2), ...of(undefined)], events);
    for (const candidate of [1, 2]) {
      const own = of(candidate);
      assert.deepEqual([own[0]?.type, own.at(-1)?.type], ["run.started", "candidate.finished"]);
      assert.equal(new Set(own.map(({ run }) => run)).size, 1);
      assert.deepEqual(
        own.map(({ seq }) => seq),
        own.map(({ seq }) => seq).toSorted((a, b) => a - b),
      );
    }
    const [last] = of(undefined);
    assert.equal(last?.type, "run.finished");
    assert.ok(last.seq > (of(2).at(-1)?.seq ?? Infinity));
    const exported = await harness(place, ["sessions", "show", "--json", finishedOf(ran).session]);
    assert.equal(exported.code, 0, exported.stderr);
  },
);

test(
  "without a right candidate the run ends with 1, the folder is unchanged, and each is reported",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const before = pictureOf(place.at("work"));
    await using model = await candidatesModel([WRONG, LOOKED, WRONG]);
    const ran = await harness(place, ["run", "--attempts", "3", ...model.flags, "mend it"]);
    assert.deepEqual([ran.code, ran.stdout, pictureOf(place.at("work"))], [1, "", before], ran.stderr);
    const rows = [...ran.stderr.matchAll(/^(?:tried)? +(\d) {2}(\w{12}) {2}(\w+) \(exit (\d)\)$/gm)];
    assert.deepEqual(
      rows.map(([, nth, , status, code]) => [nth, status, code]),
      [
        ["1", "refused", "4"],
        ["2", "done", "0"],
        ["3", "refused", "4"],
      ],
      ran.stderr,
    );
    assert.match(ran.stderr, /^✗ 1 of 3 {2}\w{12} /m);
    assert.match(ran.stderr, /None of 3 candidates .*the folder is unchanged/s);
    assert.match(ran.stderr, /Refused: bash cat ~\/\.ssh\/id_rsa/);
  },
);

test(
  "of parallel candidates the first that is done ends the others, which report it",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    // The one that is done waits for both of the others to be at it.
    const [one, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = (): string => (one.resolve(), "echo slow >c; sleep 60");
    const hangs = (): string => (other.resolve(), HANGS);
    const right = (): Promise<string> =>
      Promise.all([one.promise, other.promise]).then(() => "sleep 1; echo right >>a");
    const ran = await attempts(place, {
      does: [[slow], [right], [hangs]],
      flags: ["--jobs", "3"],
    });
    assert.equal(ran.code, 0, ran.stderr);
    // Which of them was asked first is not settled.
    const told = finishedOf(ran).attempts ?? [];
    assert.deepEqual(
      told.map(({ exit_code }) => exit_code).toSorted((a, b) => a - b),
      [0, 130, 130],
    );
    for (const { reason, applied } of told)
      if (!applied) assert.match(reason, /another candidate finished first/i);
    assert.equal(await place.read("work/a"), "1\nright\n");
    assert.equal(existsSync(place.at("work/c")), false);
    const kept = told.filter(({ applied }) => !applied).map(({ session }) => session);
    assert.deepEqual(await boxesOver(place.at("work")), []);
    for (const session of await readdir(layersFolder(place))) assert.ok(kept.includes(session));
    for (const session of kept) {
      const removed = await harness(place, ["sessions", "rm", session]);
      assert.equal(removed.code, 0, removed.stderr);
    }
    await assertLeft(place, []);
  },
);

for (const [what, user, code] of [
  ["the same line", "mine\n", 1],
  ["another line", "mine\n1\n2\n3\n4\n", 0],
] as const)
  test(`the user changes ${what} meanwhile`, { skip: noOverlay }, async () => {
    await using place = await household({ a: "0\n1\n2\n3\n4\n" });
    const lines = code === 1 ? "sed -i s/0/zero/ a; echo x >b" : "sed -i s/4/four/ a; echo x >b";
    const typed = (): string => {
      writeFileSync(place.at("work/a"), user);
      return "true";
    };
    const ran = await attempts(place, { does: [[lines, typed]] });
    const whole = finishedOf(ran);
    assert.deepEqual([ran.code, whole.exit_code, toldOf(ran).length], [code, code, 1], ran.stderr);
    if (code === 0) {
      assert.equal(await place.read("work/a"), "mine\n1\n2\n3\nfour\n");
      return;
    }
    assert.match(whole.reason, /not applied, because the folder was changed meanwhile \(a: .*harness diff/);
    assert.deepEqual([await place.read("work/a"), existsSync(place.at("work/b"))], [user, false]);
    await assertLeft(place, [whole.session]);
  });

test(
  "files that the host executes wait for a yes, and nothing else is moved",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    await place.write("work/make.sh", "mkdir .vscode; echo '{}' >.vscode/tasks.json; echo 2 >>a");
    const ran = await attempts(place, { does: [["sh make.sh"]] });
    const { status, session, reason } = finishedOf(ran);
    assert.deepEqual([ran.code, status, await place.read("work/a")], [4, "refused", "1\n"], ran.stderr);
    assert.match(reason, /would act on \.vscode\/tasks\.json by itself/);
    const yes = await harness(place, ["apply", session, "--accept", ".vscode/tasks.json"]);
    assert.deepEqual([yes.code, await place.read("work/a")], [0, "1\n2\n"], yes.stderr);
  },
);

/** Once a candidate has made this file in its layer. */
async function whenInLayer(place: Scratch, file: string): Promise<void> {
  for (let looks = 0; looks < 5000; looks += 1) {
    const layers = await readdir(layersFolder(place)).catch(() => []);
    if (layers.some((layer) => existsSync(path.join(layersFolder(place), layer, "upper", file)))) return;
    await sleep(20);
  }
  throw new Error(`no candidate made ${file}`);
}

for (const jobs of ["1", "3"])
  test(
    `Ctrl-C ends all of ${jobs} at once with 130, and the folder is unchanged`,
    { skip: noOverlay },
    async () => {
      await using place = await household({ a: "1\n" });
      const before = pictureOf(place.at("work"));
      const long = ["echo x >>a; echo x >made; sleep 60"];
      const start: RunStart = {
        whenMade: [
          layersFolder(place),
          (child) => void whenInLayer(place, "made").then(() => child.kill("SIGINT")),
        ],
      };
      const ran = await attempts(place, { does: [long, long, long], flags: ["--jobs", jobs], start });
      const { status, exit_code, changes } = finishedOf(ran);
      assert.deepEqual([ran.code, status, exit_code], [130, "interrupted", 130], ran.stderr);
      assert.deepEqual(changes, { added: [], modified: [], deleted: [], ignored: 0 });
      assert.equal(toldOf(ran).length, Number(jobs));
      assert.deepEqual(pictureOf(place.at("work")), before);
      assert.deepEqual(await boxesOver(place.at("work")), []);
    },
  );

slowTest(
  "when applying is killed, the next command finishes it, and undo takes everything back",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const before = pictureOf(place.at("work"));
    const many = "for i in $(seq 1 600); do mkdir -p d$i; seq 1 2000 >d$i/f; done; echo 2 >>a";
    const killed = await attempts(place, {
      does: [[many]],
      start: { whenMade: [place.at("work/d1"), (child) => child.kill("SIGKILL")] },
    });
    const finished = await harness(place, ["undo", "--dry-run"]);
    assert.equal(finished.code, 0, finished.stderr);
    const made = (await readdir(place.at("work"))).filter((name) => name.startsWith("d"));
    assert.deepEqual([made.length, await place.read("work/a")], [600, "1\n2\n"], killed.stderr);
    const undone = await harness(place, ["undo"]);
    assert.deepEqual([undone.code, pictureOf(place.at("work"))], [0, before], undone.stderr);
    assert.deepEqual(await boxesOver(place.at("work")), []);
  },
);

test(
  "limits apply to all candidates together, except turns, which apply to each",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const turns = await attempts(place, {
      does: [["echo 1", "echo 2", "echo 3"], ["echo right >>a"]],
      flags: ["--max-turns", "2"],
    });
    assert.deepEqual(
      [turns.code, toldOf(turns).map(([status]) => status)],
      [0, ["budget", "done"]],
      turns.stderr,
    );
    // Each request is 110 tokens.
    const tokens = await attempts(place, { does: [WRONG, WRONG], flags: ["--max-tokens", "440"] });
    assert.equal(tokens.code, 1, tokens.stderr);
    assert.deepEqual(toldOf(tokens), [
      ["refused", 4, false],
      ["budget", 3, false],
    ]);
    assert.match(
      finishedOf(tokens).reason,
      /candidates started \(\d of 3\) .*limit of 440 tokens is used up/,
    );
  },
);

test(
  "without a model or a box nothing is retried, and the exit code says why",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const away = ["--provider", "ollama", "--base-url", "http://127.0.0.1:9", "--model", "m"];
    const ran = await harness(place, ["run", "--json", "--attempts", "3", ...away, "mend it"]);
    assert.deepEqual([ran.code, toldOf(ran)], [5, [["model", 5, false]]], ran.stderr);
  },
);

test(
  "the setting applies to change requests, and works with a copy as with a layer",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    await place.write(".config/harness/config.json", '{"attempts": 2, "isolation": "copy"}');
    await using model = await candidatesModel([LOOKED, RIGHT]);
    const run = ["run", "--json", ...model.flags];
    const ran = await harness(place, [...run, "mend it"]);
    assert.deepEqual(
      [ran.code, toldOf(ran).length, await place.read("work/a")],
      [0, 2, "1\nright\n"],
      ran.stderr,
    );
    await assertLeft(place, []);
    const asked = await harness(place, [...run, "what does sum.js do?"]);
    assert.deepEqual([asked.code, finishedOf(asked).attempts], [0, undefined], asked.stderr);
    const goesOn = await harness(place, [...run, "--continue", "and now?"]);
    assert.equal(finishedOf(goesOn).attempts, undefined);
    assert.match(goesOn.stderr, /one attempt, not 2/);
  },
);
