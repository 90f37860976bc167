import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import {
  type AttemptAnswer,
  type Attack,
  attackScript,
  judgeAttack,
  promisesKept,
  readAnswers,
  type AttemptResults,
} from "../../../src/docker/attack/attack.ts";
import { ATTACKS } from "../../../src/docker/attack/battery.ts";

const ATTACK: Attack = {
  id: "some.thing",
  promise: "kernel",
  text: "some thing does not happen",
  attempts: { shell: { one: "false", two: "false" } },
  twin: { shell: { allowed: "true" } },
  remedy: "another engine",
};

const answer = (name: string, kind: AttemptAnswer["kind"], why = ""): AttemptAnswer => ({ name, kind, why });
const tried = (answers: readonly AttemptAnswer[], more: Partial<AttemptResults> = {}): AttemptResults => ({
  answers,
  cause: null,
  lost: null,
  ...more,
});
const REFUSED = tried([answer("one", "refused"), answer("two", "refused")]);
const WORKS = tried([answer("allowed", "through")]);
const SEEN = { tried: REFUSED, twin: WORKS, changed: [] as readonly string[], ownKernel: false };

const judged = (seen: Partial<Parameters<typeof judgeAttack>[1]>, attack: Partial<Attack> = {}): unknown => {
  const { state, why, remedy } = judgeAttack({ ...ATTACK, ...attack }, { ...SEEN, ...seen });
  assert.equal(remedy === "", state === "held");
  return [state, ...why];
};

const outcome = (promise: Attack["promise"], seen: Partial<typeof SEEN>) =>
  judgeAttack({ ...ATTACK, promise }, { ...SEEN, ...seen });

const size = (one: Attack["attempts"]): number =>
  Object.keys({ ...one.shell }).length + Object.keys({ ...one.python }).length;

test("an attack counts as held only if every attempt was refused and the twin works", () => {
  assert.deepEqual(judged({}), ["held"]);
  assert.deepEqual(judged({ tried: tried([answer("one", "refused"), answer("two", "through", "EINVAL")]) }), [
    "broken",
    "two: it went through (EINVAL)",
  ]);
  assert.deepEqual(judged({ changed: ["the host finds /x made"] }), ["broken", "the host finds /x made"]);
});

test("an attempt that could not run, did not report or has a broken twin shows nothing", () => {
  const missing = tried([answer("one", "refused"), answer("two", "missing", "no python3")]);
  assert.deepEqual(judged({ tried: missing }), ["not shown", "two: it could not be tried (no python3)"]);
  assert.deepEqual(judged({ tried: tried([answer("one", "refused")]) }), [
    "not shown",
    "two: it reported nothing",
  ]);
  assert.deepEqual(judged({ tried: tried([], { lost: "the box was lost" }) }), [
    "not shown",
    "the box was lost",
    "one: it reported nothing",
    "two: it reported nothing",
  ]);
  assert.deepEqual(judged({ twin: tried([answer("allowed", "refused", "EPERM")]) }), [
    "not shown",
    "what is allowed fails: allowed (EPERM)",
  ]);
  assert.deepEqual(judged({ tried: tried([]) }, { attempts: {}, asks: { run: "", interpret: () => [] } }), [
    "not shown",
    "nothing was tried",
  ]);
});

test("ending for the expected cause counts as a refusal of unreported attempts, any other ending does not", () => {
  const ended = tried([answer("one", "refused")], { cause: "memory" });
  assert.deepEqual(judged({ tried: ended }, { ends: ["memory"] }), ["held"]);
  assert.deepEqual(judged({ tried: ended }, { ends: ["pids"] }), ["not shown", "two: it reported nothing"]);
  const through = tried([answer("one", "through")], { cause: "memory" });
  assert.deepEqual(judged({ tried: through }, { ends: ["memory"] }), ["broken", "one: it went through"]);
});

test("effects inside the box alone, or on the box's own kernel, are no breach where the attack says so", () => {
  const through = tried([answer("one", "through"), answer("two", "through")]);
  assert.deepEqual(judged({ tried: through }, { counts: "host" }), ["held"]);
  assert.deepEqual(judged({ tried: through, changed: ["x"] }, { counts: "host" }), ["broken", "x"]);
  assert.deepEqual(judged({ tried: through, ownKernel: true }, { ownKernel: true }), ["held"]);
  assert.equal((judged({ tried: through, ownKernel: true }) as readonly string[])[0], "broken");
});

test("the state of a promise is that of its worst attack", () => {
  const kept = promisesKept([
    outcome("kernel", {}),
    outcome("kernel", { changed: ["x"] }),
    outcome("network", { twin: tried([]) }),
    outcome("network", {}),
    outcome("limits", {}),
  ]);
  assert.deepEqual(
    kept.map(({ promise, state }) => [promise, state]),
    [
      ["kernel", "broken"],
      ["network", "not shown"],
      ["limits", "held"],
    ],
  );
});

test("the script reports every attempt as through, refused or missing", () => {
  const attempts = {
    shell: { "it's true": "true", wrong: "echo no >&2; exit 3", none: "no-such-program-at-all" },
  };
  const said = execFileSync("sh", ["-c", attackScript(attempts).replaceAll("{W}", "/")], {
    encoding: "utf8",
  });
  assert.deepEqual(
    readAnswers(`noise\n@ forged\n${said}`).map(({ name, kind, why }) => [
      name,
      kind,
      kind === "missing" ? "" : why,
    ]),
    [
      ["it's true", "through", ""],
      ["wrong", "refused", "no"],
      ["none", "missing", ""],
    ],
  );
});

test("each attack has a unique name, at least one attempt, and a twin", () => {
  assert.equal(new Set(ATTACKS.map(({ id }) => id)).size, ATTACKS.length);
  for (const { id, attempts, asks, twin, remedy } of ATTACKS) {
    assert.ok(asks !== undefined || size(attempts) > 0, id);
    assert.ok(size(twin) > 0 && remedy !== "", id);
  }
});
