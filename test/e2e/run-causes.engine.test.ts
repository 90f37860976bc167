import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { AWAY } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { lastResult, resultsIn } from "./run-requests.ts";

const DONE: Said = { text: "done" };
const bash = (command: string, more = {}): Said => ({ calls: [["bash", { command, ...more }]] });

interface Met {
  readonly what: string;
  readonly command: string;
  readonly cause: string;
  readonly kind?: string;
  readonly more?: object;
}

/** One after the other in one box, and those that want another one. */
const MET: Readonly<Record<string, readonly Met[]>> = {
  "": [
    { what: "a program that fails", command: "ls nosuchfile", cause: "program" },
    { what: "a name that cannot be looked up", command: "python3 fetch.py", cause: "network" },
    { what: "a protected file", command: "python3 plant.py", cause: "filesystem" },
    {
      what: "a timeout",
      command: "sleep 30",
      cause: "timeout",
      kind: "timed_out",
      more: { timeout: 1 },
    },
    { what: "a full /tmp", command: "head -c 4000000000 /dev/zero > /tmp/big", cause: "disk" },
  ],
  "--memory 128m": [{ what: "too little memory", command: "python3 eat.py", cause: "memory" }],
  "--pids 40": [{ what: "too many processes", command: "python3 many.py", cause: "pids" }],
};

const SCRIPTS = {
  ".git/config": "[core]\n",
  "fetch.py": "import urllib.request\nurllib.request.urlopen('http://example.com')\n",
  "plant.py": "open('.git/config', 'a').write('x')\n",
  "eat.py": "x = bytearray(10**9)\nfor i in range(0, len(x), 4096): x[i] = 1\n",
  "many.py": "import os, time\nfor _ in range(200):\n  if os.fork() == 0:\n    time.sleep(2); os._exit(0)\n",
};

for (const [flags, met] of Object.entries(MET))
  test(`causes of failed commands are reported to the model and to people ${flags}`, { skip }, async (t) => {
    await using place = await household(SCRIPTS);
    await using model = await startModel([...met.map(({ command, more }) => bash(command, more)), DONE]);
    const limits = flags.split(" ").filter((word) => word !== "");
    const ran = await harness(place, ["run", "--json", ...limits, ...model.flags, "run a program"]);
    const ends = eventsOf(ran).filter((event) => event.type === "call.ended");
    const results = resultsIn(model.asked().at(-1));
    for (const [nth, { what, cause, kind = "failed" }] of met.entries())
      await t.test(`${what} as ${cause}`, () => {
        const ended = ends[nth];
        assert.deepEqual([ended?.kind, ended?.cause], [kind, cause], `${ended?.text} ${ran.stderr}`);
        assert.equal(ended?.reason !== undefined, cause !== "program", ended?.reason);
        assert.ok(results[nth]?.startsWith(ended?.text ?? "?"), results[nth]);
      });
    assert.equal(ends.length, met.length, ran.stderr);
    assert.equal(await place.read("work/.git/config"), "[core]\n");
    assert.deepEqual(finishedOf(ran).denials, []);
  });

test("advice is given once per cause", { skip }, async () => {
  await using place = await household(SCRIPTS);
  await using model = await startModel([bash("python3 fetch.py"), bash("python3 fetch.py 2"), DONE]);
  await harness(place, ["run", ...model.flags, "fetch it twice"]);
  const advised = resultsIn(model.asked().at(-1)).map((text) => text.includes("[advice: "));
  assert.deepEqual(advised, [true, false]);
});

test(
  "the project's own tests run, and reach neither an outside file nor a local server",
  { skip },
  async () => {
    await using place = await household({ "test.py": "" }, AWAY);
    await place.write("outside.txt", "KUMQUAT\n", 0o666);
    const heard: string[] = [];
    const server = createServer((socket) => {
      heard.push("a connection");
      socket.end();
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const script = `import socket
try: print(open(${JSON.stringify(place.at("outside.txt"))}).read())
except OSError as e: print("file", e)
for host in ("127.0.0.1", "172.17.0.1", "host.docker.internal"):
  try: socket.create_connection((host, ${port}), 2); print("CONNECTED")
  except OSError as e: print("socket", e)
print("tests ran")
`;
    await place.write("work/test.py", script);
    await using model = await startModel([bash("python3 test.py"), DONE]);
    const ran = await harness(place, ["run", ...model.flags, "run the tests"]);
    server.close();
    assert.equal(ran.code, 0, ran.stderr);
    const result = lastResult(model.asked());
    assert.match(result, /tests ran/);
    assert.ok(!result.includes("KUMQUAT") && !result.includes("CONNECTED"), result);
    assert.deepEqual(heard, []);
  },
);
