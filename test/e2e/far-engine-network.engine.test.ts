import assert from "node:assert/strict";
import test, { after } from "node:test";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { bash, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { startHttp } from "../fakes/loopback.ts";

/** What is granted to boxes of an engine that is named by its address, as one of another machine. */

/** On the host's loopback; as a proxy it answers for any host, so that invented names work. */
const server = await startHttp(({ url }, response) => {
  response.end(url?.startsWith("http://") === true ? `${url}\n` : "HOST\n");
});
after(() => server[Symbol.asyncDispose]());

test("a remote box reaches a granted host, and other requests are reported", { skip }, async () => {
  await using far = await overNetwork();
  await using place = await household();
  const line = `curl -sS --noproxy '' http://${server.at}/; curl -sS http://elsewhere.test/ >/dev/null`;
  const words = ["--json", "--engine", far.host, "--allow-domain", server.at, "--", "bash", "-c", line];
  const { stdout, blocked_connections: blocked } = answerOf(await sandboxExec(place, words));
  assert.equal(stdout, "HOST\n");
  assert.match(JSON.stringify(blocked), /^\[{"host":"elsewhere\.test",.*"rule":"not-granted"/);
});

const file = (name: string): string => `curl -sS -m 20 http://files.test/${name} >> got; echo $?`;

test(
  "a remote frozen box gets what is granted with the answer, and continues in its copy",
  { skip },
  async () => {
    await using far = await overNetwork();
    await using place = await household();
    await using model = await startModel([bash(file("1")), bash(file("2")), { text: "Everything is done." }]);
    // The host's own way out is a stub, so that a name that is granted leads nowhere else.
    const start = {
      env: { HTTP_PROXY: `http://${server.at}`, NO_PROXY: "127.0.0.1,localhost", HARNESS_ENGINE: far.host },
    };
    const words = ["run", "--json", "--on-ask", "park", ...model.flags, "do it"];
    const first = await harness(place, words, start);
    const asked = eventsOf(first).find(({ type }) => type === "call.parked");
    assert.deepEqual(asked?.type === "call.parked" && asked.grants, ["files.test"], first.stderr);
    const id = finishedOf(first).session;
    const answer = ["approve", id, "--json", "--session", "--allow-domain", "files.test"];
    const done = await harness(place, answer, start);
    assert.equal(finishedOf(done).status, "done", done.stdout + done.stderr);
    assert.doesNotMatch(done.stderr, /A new one continues/);
    const applied = await harness(place, ["apply", id], start);
    assert.equal(applied.code, 0, applied.stderr);
    assert.equal(await place.read("work/got"), "http://files.test/1\nhttp://files.test/2\n");
  },
);
