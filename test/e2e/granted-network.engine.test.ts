import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

/** On the host's loopback, and granted as such: nothing here leaves the machine. */
const server = createServer(({ url }, response) => {
  if (url === "/away") response.writeHead(302, { Location: "http://elsewhere.test/" });
  response.end("HOST\n");
});
const at = (): string => {
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
};
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const sh = (line: string): readonly string[] => ["--", "bash", "-c", line];

/** The box's own loopback is what the address means otherwise. */
const get = (url: string): string => `curl -sSL --noproxy '' http://${url}`;

test("sandbox exec --allow-domain reaches that host and says what else was asked for", { skip }, async () => {
  await using place = await household();
  const line = `${get(`${at()}/x`)}; ${get("elsewhere.test/")} >/dev/null; ${get("elsewhere.test/")} >/dev/null`;
  const ended = await sandboxExec(place, ["--json", "--allow-domain", at(), ...sh(line)]);
  const { stdout, blocked_connections: blocked } = answerOf(ended);
  assert.equal(stdout, "HOST\n");
  assert.deepEqual(blocked, [
    {
      host: "elsewhere.test",
      port: 80,
      method: "GET",
      rule: "not-granted",
      reason: "the host elsewhere.test is not granted; --allow-domain elsewhere.test would grant it",
      times: 2,
    },
  ]);
  const without = await sandboxExec(place, ["--json", ...sh(get(`${at()}/x`))]);
  assert.deepEqual([answerOf(without)["blocked_connections"], answerOf(without)["stdout"]], [[], ""]);
});

test(
  "a run tells what was reached and refused: the model, its events, its report; it is no refusal",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([
      { calls: [["bash", { command: get(`${at()}/away`) }]] },
      { text: "It could not be had." },
    ]);
    const words = ["run", "--json", "--allow-domain", at(), ...model.flags, "get the file"];
    const ran = await harness(place, words);
    const [told = ""] = resultsIn(model.asked().at(-1));
    assert.match(told, /the host elsewhere\.test is not granted/);
    const connections = eventsOf(ran).filter((event) => event.type === "connection");
    assert.deepEqual(
      connections
        .map(({ host, verdict, rule }) => [host, verdict, rule].join(" "))
        .toSorted((one, other) => one.localeCompare(other)),
      ["127.0.0.1 allowed granted", "elsewhere.test denied not-granted"],
    );
    const { denials, session, status } = finishedOf(ran);
    assert.deepEqual([denials, status], [[], "done"]);
    const report = await harness(place, ["report", session]);
    assert.match(report.stdout, /network: reached\n {2}127\.0\.0\.1:\d+: 1 connection/);
    assert.match(report.stdout, /network: refused\n {2}elsewhere\.test:80: 1 time: the host elsewhere\.test/);
  },
);
