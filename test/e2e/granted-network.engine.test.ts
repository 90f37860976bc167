import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test, { after } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { bash, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";
import { noTerminal, onTerminal } from "./terminal.ts";
import { startHttp } from "../fakes/loopback.ts";

/** On the host's loopback, and granted as such: nothing here leaves the machine. */
const server = await startHttp(({ url }, response) => {
  // As a proxy it answers for any host, so that invented names work.
  if (url?.startsWith("http://") === true) return void response.end(`${url}\n`);
  if (url === "/much") return void response.end(Buffer.alloc(3 * 2 ** 20));
  if (url === "/away") response.writeHead(302, { Location: "http://elsewhere.test/" });
  response.end("HOST\n");
});
after(() => server[Symbol.asyncDispose]());

const sh = (line: string): readonly string[] => ["--", "bash", "-c", line];

/** The box's own loopback is what the address means otherwise. */
const get = (url: string): string => `curl -sSL --noproxy '' http://${url}`;

test("sandbox exec --allow-domain reaches that host and reports other requests", { skip }, async () => {
  await using place = await household({ ".harness/config.json": '{"max_turns": 99}' });
  const line = `${get(`${server.at}/x`)}; ${get("elsewhere.test/")} >/dev/null; ${get("elsewhere.test/")} >/dev/null`;
  const ended = await sandboxExec(place, ["--json", "--allow-domain", server.at, ...sh(line)]);
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
  // What the project brings and what cannot be trusted is said; a denied host stays so, and budgets are settings.
  const config = { deny_domains: ["127.0.0.1"], network_download: "1m" };
  await place.write(".config/harness/config.json", JSON.stringify(config));
  const words = ["--json", "--allow-domain", server.at, ...sh(get(`${server.at}/x`))];
  const denied = await sandboxExec(place, words, { env: { SSL_CERT_FILE: place.at("none.pem") } });
  const { blocked_connections: denials } = answerOf(denied);
  assert.match(JSON.stringify(denials), /"rule":"denied-host"/);
  assert.match(
    denied.stderr,
    /not among the authorities that the box trusts: SSL_CERT_FILE: \S+none\.pem is not there/,
  );
  assert.match(denied.stderr, /applies only where it tightens: \.harness\/config\.json/);
  await place.write(".config/harness/config.json", '{"network_download": "1m"}');
  const much = ["--json", "--allow-domain", server.at, ...sh(`${get(`${server.at}/much`)} | wc -c`)];
  assert.match(JSON.stringify(answerOf(await sandboxExec(place, much))), /more than the 1048576 bytes/);
  const without = await sandboxExec(place, ["--json", ...sh(get(`${server.at}/x`))]);
  assert.deepEqual([answerOf(without)["blocked_connections"], answerOf(without)["stdout"]], [[], ""]);
});

const lock = (...names: readonly string[]): string =>
  JSON.stringify({
    packages: Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: "1.3.0" }])),
  });
/** As `npm install` leaves it: installed packages are read from there. */
const INSTALL = `printf '%s' '${lock("first", "left-pad")}' > node_modules/.package-lock.json`;

test(
  "a preset whose tool is missing on this machine is resolved in the box, and reported",
  { skip },
  async () => {
    await using place = await household();
    await place.write("bin/README", "programs of a machine without any tool of packages\n");
    await symlink("/usr/bin/env", place.at("bin/env"));
    const env = { PATH: place.at("bin"), HARNESS_NODE: process.execPath };
    const given = (preset: string): ReturnType<typeof sandboxExec> =>
      sandboxExec(place, ["--allow-domain", preset, "--", "true"], { env });
    const npm = await given("npm");
    assert.equal(npm.code, 0, npm.stderr);
    assert.match(npm.stderr, /^note: granted by npm of the box: [\w.-]+:443$/m);
    const cargo = await given("cargo");
    assert.deepEqual(
      [cargo.code, /cargo: no tool here knows its registry/.test(cargo.stderr)],
      [2, true],
      cargo.stderr,
    );
  },
);

test(
  "a run reports reached and refused hosts to the model, in events and in its report, without counting as refused",
  { skip },
  async () => {
    await using place = await household({ "node_modules/.package-lock.json": lock("first") });
    await using model = await startModel([
      { calls: [["bash", { command: get(`${server.at}/away`) }]] },
      { calls: [["bash", { command: INSTALL }]] },
      { text: "It could not be had." },
    ]);
    const granted = ["--allow-domain", server.at, "--allow-domain", `npm=${server.at}:private`];
    const ran = await harness(place, ["run", "--json", ...granted, ...model.flags, "get the file"]);
    const told = resultsIn(model.asked().at(-1)).join("\n");
    assert.match(told, /the host elsewhere\.test is not granted/);
    const connections = eventsOf(ran).filter((event) => event.type === "connection");
    assert.deepEqual(
      connections
        .map(({ host, verdict, rule }) => [host, verdict, rule].join(" "))
        .toSorted((one, other) => one.localeCompare(other)),
      ["127.0.0.1 allowed granted", "elsewhere.test denied not-granted"],
    );
    const { denials, session, status, installed } = finishedOf(ran);
    assert.deepEqual([denials, status], [[], "done"]);
    // With a registry new packages are named; the one that was there before is only counted.
    const packages = [{ ecosystem: "npm", name: "left-pad", version: "1.3.0" }];
    assert.deepEqual(installed, { total: 2, new: 1, packages });
    const report = await harness(place, ["report", session]);
    assert.match(report.stdout, /network: reached\n {2}127\.0\.0\.1:\d+: 1 connection/);
    assert.match(report.stdout, /installed\n {2}2 packages, 1 of them new\n {2}npm left-pad 1\.3\.0\n/);
    assert.match(report.stdout, /network: refused\n {2}elsewhere\.test:80: 1 time: the host elsewhere\.test/);
  },
);

test("a chat counts the packages that each request installed", { skip: noTerminal || skip }, async () => {
  await using place = await household({ "node_modules/.package-lock.json": lock("first") });
  const done = { text: "It is done." };
  await using model = await startModel([bash(INSTALL), done, bash("cat README.md"), done]);
  await using terminal = onTerminal(place, ["--allow-domain", `npm=${server.at}:private`, ...model.flags]);
  await terminal.until(/harness> $/);
  terminal.type("install it\r");
  await terminal.until(/run it\? \[y\/N\] $/);
  terminal.type("y\r");
  await terminal.until(/It is done\.\n[\s\S]*harness> $/);
  terminal.type("look\r");
  await terminal.until(/It is done\.\n[\s\S]*harness> $/);
  terminal.type("exit\r");
  assert.equal(await terminal.ended, 0);
  const report = await harness(place, ["report", "--json"]);
  const { runs } = JSON.parse(report.stdout) as {
    readonly runs: readonly { readonly end: { readonly installed: unknown } }[];
  };
  const packages = [{ ecosystem: "npm", name: "left-pad", version: "1.3.0" }];
  assert.deepEqual(
    runs.map(({ end }) => end.installed),
    [
      { total: 2, new: 1, packages },
      { total: 2, new: 0, packages: [] },
    ],
  );
});

/** The host's own way out is a stub on loopback, so that a name that is granted leads nowhere else. */
const upstream = (): Readonly<Record<string, string>> => ({
  HTTP_PROXY: `http://${server.at}`,
  NO_PROXY: "127.0.0.1,localhost",
});

const file = (name: string): string => `curl -sS -m 5 http://files.test/${name} >> got; echo $?`;

test(
  "approve grants for the call, for the session, and always, in the box that waited",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([
      bash(file("1"), file("2"), file("3")),
      { text: "Everything is done." },
    ]);
    const start = { env: upstream() };
    const first = await harness(place, ["run", "--json", "--on-ask", "park", ...model.flags, "do it"], start);
    const asked = eventsOf(first).find(({ type }) => type === "call.parked");
    assert.deepEqual(asked?.type === "call.parked" && asked.grants, ["files.test"], first.stderr);
    const id = finishedOf(first).session;
    const wrong = await harness(place, ["approve", id, "--allow-domain", "files.test:x"], start);
    assert.deepEqual([wrong.code, /--allow-domain/.test(wrong.stderr)], [2, true], wrong.stderr);
    const once = await harness(place, ["approve", id, "--json", "--allow-domain", "files.test"], start);
    assert.deepEqual(
      [finishedOf(once).status, await place.read("work/got")],
      ["parked", "http://files.test/1\n"],
    );
    const said = eventsOf(once).find(({ type }) => type === "approval");
    assert.deepEqual(said?.type === "approval" && [said.said, said.grant], [
      "once",
      { domains: ["files.test"], for: "call" },
    ]);
    const rest = ["approve", id, "--json", "--session", "--allow-domain", "files.test"];
    const session = await harness(place, rest, start);
    assert.equal(finishedOf(session).status, "done", session.stderr);
    assert.equal(
      await place.read("work/got"),
      "http://files.test/1\nhttp://files.test/2\nhttp://files.test/3\n",
    );
    assert.doesNotMatch(once.stderr + session.stderr, /A new one goes on/, "the frozen box took the grants");
    const done = { text: "Everything is done." };
    await using again = await startModel([bash(file("4")), done, bash(file("5")), done]);
    const more = await harness(place, ["run", "--json", "--resume", id, ...again.flags, "go on"], start);
    assert.equal(finishedOf(more).status, "done", "the rest of the session has the grant");
    const parked = ["run", "--json", "--on-ask", "park", ...again.flags, "do it"];
    const other = await harness(place, parked, start);
    await harness(
      place,
      ["approve", finishedOf(other).session, "--always", "--allow-domain", "files.test"],
      start,
    );
    const settings = JSON.parse(await place.read(".config/harness/config.json")) as Record<string, unknown>;
    assert.deepEqual(settings["allow_domains"], ["files.test"]);
  },
);
