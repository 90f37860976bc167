import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { LineTransport, programInBox, programOnHost } from "../../src/extensions/mcp-transports.ts";
import { McpServer } from "../../src/extensions/mcp-client.ts";
import { fakeBox } from "../fakes/box.ts";
import { scratch } from "../fixtures/scratch.ts";

const FIXTURE = path.join(import.meta.dirname, "../fixtures/mcp-server.ts");

const serverOver = (transport: LineTransport): McpServer =>
  new McpServer({
    name: "files",
    version: "1",
    open: () => Promise.resolve({ transport, end: transport.end }),
    initMs: 20_000,
    callMs: 20_000,
    delays: [],
    changed: () => undefined,
    notice: () => undefined,
  });

const never = (): AbortSignal => new AbortController().signal;

test("a program of this machine has the variables that it is given, and is gone at the end", async () => {
  await using place = await scratch();
  const env = { PATH: process.env["PATH"] ?? "", TOKEN: "mine" };
  process.env["HARNESS_TEST_SECRET"] = "not for servers";
  const words = [process.execPath, FIXTURE, "good"];
  const transport = new LineTransport(programOnHost({ words, env, folder: place.path }));
  {
    await using server = serverOver(transport);
    await server.ready();
    const said = await server.call("env", { name: "TOKEN" }, never());
    assert.deepEqual(said, { kind: "ok", text: "mine" });
    assert.equal((await server.call("env", { name: "HARNESS_TEST_SECRET" }, never())).text, "(unset)");
    await server.call("write", { path: place.at("pid"), text: "here" }, never());
    assert.equal(await place.read("pid"), "here");
  }
  delete process.env["HARNESS_TEST_SECRET"];
  assert.deepEqual(transport.end(), { reason: "", isPlace: false });
});

test("a program that is not there, and one that dies, say why, with their last word", async () => {
  await using place = await scratch();
  const started = async (words: readonly string[]): Promise<McpServer> => {
    const server = serverOver(new LineTransport(programOnHost({ words, env: {}, folder: place.path })));
    await server.ready();
    return server;
  };
  await using missing = await started([place.at("none")]);
  assert.match(missing.why, /cannot be started: .*ENOENT/);
  await using dead = await started([process.execPath, FIXTURE, "dies-at-start"]);
  assert.match(dead.why, /exit code 3.*no licence/);
});

test("in a box it is a command without a limit of time, in a folder of the workspace, and ends with its box", async () => {
  const box = fakeBox({ workspace: "/repo" });
  const transport = new LineTransport(programInBox(box, { words: ["cat"], env: { A: "b" }, folder: "sub" }));
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  Object.assign(transport, { onclose: resolve });
  await transport.start();
  const [asked] = box.asked;
  assert.deepEqual(
    [asked?.words, asked?.env, asked?.folder, asked?.timeoutMs],
    [["cat"], { A: "b" }, "/repo/sub", 0],
  );
  box.lose("the engine went away");
  await closed;
  assert.ok(transport.end().isPlace);
});
