import assert from "node:assert/strict";
import test from "node:test";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { removeCopies } from "../fixtures/kept-copies.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { FINE, sessionOf } from "./parked.ts";
import {
  bash,
  eventsOf,
  finishedOf,
  harness,
  type Ran,
  type Replies,
  type RunStart,
  startModel,
} from "./run-command.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

/** Sessions of a remote engine are resumed without naming the engine. */

/** No engine of this machine answers: what is not asked of the other one is asked of none. */
const NONE: RunStart = { env: { DOCKER_HOST: "unix:///run/none.sock" } };
const PROMPT = /harness> $/;

/** Follows the prompt and reports the result. */
const obeys: Replies = (chat) => {
  const { role, content } = chat.messages.at(-1) ?? { role: "", content: "" };
  if (role === "tool") return { text: `It says ${content.split("\n")[0]}.` };
  return bash(/^run: (.*)$/m.exec(content)?.[1] ?? "true");
};

interface Far extends AsyncDisposable {
  readonly host: string;
  readonly place: Scratch;
  readonly flags: readonly string[];
  /** `harness run --json … TASK`; no engine answers but the one that is named, or that has the session. */
  readonly run: (...words: readonly string[]) => Promise<Ran>;
  /** Of a session that has made b.txt there. */
  readonly begun: () => Promise<string>;
}

async function farPlace(replies: Replies = obeys): Promise<Far> {
  await using stack = new AsyncDisposableStack();
  const { host } = stack.use(await overNetwork());
  const place = stack.use(await household({ "a.txt": "one\n" }));
  stack.defer(() => removeCopies(place));
  const { flags } = stack.use(await startModel(replies));
  const kept = stack.move();
  const run: Far["run"] = (...words) => harness(place, ["run", "--json", ...flags, ...words], NONE);
  return {
    host,
    place,
    flags,
    run,
    begun: async () => sessionOf(await run("--engine", host, "run: echo two > b.txt")),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test("a run continues a session where its copy is, with a notice", { skip }, async () => {
  await using far = await farPlace();
  const id = await far.begun();
  for (const words of [["--continue"], ["--resume", id.slice(0, 8)]]) {
    const again = await far.run(...words, "run: cat b.txt");
    const { status, answer } = finishedOf(again);
    assert.deepEqual([status, answer], ["done", "It says two."], again.stderr);
    assert.match(
      again.stderr.replaceAll(/\s+/g, " "),
      new RegExp(`continues at ${far.host}, where the changes of ${id} are`),
    );
  }
  // A variable names where new ones begin.
  const env = { ...NONE.env, HARNESS_ENGINE: "ssh://dev@other.test" };
  const again = await harness(far.place, ["run", "--json", ...far.flags, "--continue", "run: cat b.txt"], {
    env,
  });
  assert.equal(finishedOf(again).answer, "It says two.", again.stderr);
});

test("naming another engine is refused with what to type, and so is bind isolation", { skip }, async () => {
  await using far = await farPlace();
  const id = await far.begun();
  const record = `.local/state/harness/layers/${id}/layer`;
  const layer = JSON.parse(await far.place.read(record)) as { readonly at: string };
  assert.equal(layer.at, far.host);
  // As one that has no such copy would be.
  await far.place.write(
    record,
    JSON.stringify({ ...layer, volume: "harness-none", at: "ssh://dev@far.test" }),
  );
  const other = await far.run("--engine", far.host, "--continue", "run: cat b.txt");
  assert.equal(other.code, 2, other.stderr);
  const why = JSON.stringify(eventsOf(other));
  assert.match(why, /copy on the engine at ssh:\/\/dev@far\.test, but the one at/);
  assert.match(why, /use --engine ssh:\/\/dev@far\.test;/);
  await far.place.write(record, JSON.stringify(layer));
  const bound = await far.run("--isolation", "bind", "--continue", "run: cat b.txt");
  assert.equal(bound.code, 2, bound.stderr);
  assert.match(
    bound.stdout + bound.stderr,
    /isolation bind \(from --isolation\): the engine at \S+ cannot see this machine's files/,
  );
});

test("a fork and a session with applied changes start where new ones do", { skip }, async () => {
  await using far = await farPlace();
  const id = await far.begun();
  const forked = await far.run("--resume", id, "--fork", "run: cat b.txt");
  assert.equal(forked.code, 6, forked.stdout);
  assert.match(forked.stderr + forked.stdout, /none\.sock/);
  const applied = await harness(far.place, ["apply", id], NONE);
  assert.equal(applied.code, 0, applied.stderr);
  const again = await far.run("--resume", id, "run: cat b.txt");
  assert.equal(again.code, 6, again.stdout);
});

test(
  "a chat continues on the remote engine, and a local chat says where to type it",
  { skip: skip || noTerminal },
  async () => {
    await using far = await farPlace();
    const id = await far.begun();
    {
      await using chat = onTerminal(far.place, [...far.flags], NONE.env);
      await chat.until(PROMPT);
      chat.type(`/resume ${id}\r`);
      const said = await chat.until(/harness resume \w+\n[\s\S]*harness> $/);
      assert.match(
        said.replaceAll(/\s+/g, " "),
        new RegExp(`are at ${far.host}, .* there: harness resume ${id}`),
      );
    }
    await using chat = onTerminal(far.place, ["resume", ...far.flags], NONE.env);
    await chat.until(PROMPT);
    chat.type("run: cat b.txt\r");
    assert.match(await chat.until(/It says two\.[\s\S]*harness> $/), /two/);
  },
);

test(
  "an answer finds the box waiting remotely, even if only DOCKER_HOST had named the engine",
  { skip },
  async () => {
    await using far = await farPlace([bash("curl -sS -m 5 http://example.com/x; echo ran >> ran"), FINE]);
    const words = ["run", "--json", "--isolation", "copy", "--on-ask", "park", ...far.flags, "do it"];
    const asked = await harness(far.place, words, { env: { DOCKER_HOST: far.host } });
    assert.equal(finishedOf(asked).status, "parked", asked.stderr);
    const done = await harness(far.place, ["approve", sessionOf(asked), "--json", "--once"], NONE);
    assert.equal(finishedOf(done).status, "done", done.stdout + done.stderr);
    assert.doesNotMatch(done.stderr, /A new one goes on/);
  },
);
