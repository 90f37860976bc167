import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findOllama, startInstalledOllama } from "../../src/models/providers/ollama-setup.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";

/** Serves /api/version at OLLAMA_HOST, and prints how it was started. */
const SERVER = `
const { createServer } = require("node:http");
const { hostname, port } = new URL(process.env.OLLAMA_HOST);
console.log("args " + process.argv.slice(2).join(" "));
console.error("listening on " + process.env.OLLAMA_HOST);
createServer((request, response) => {
  response.setHeader("content-type", "application/json");
  response.end('{"version":"0.12.6"}');
}).listen(Number(port), hostname);
`;
const BROKEN = `console.error("Error: listen tcp: bind: permission denied"); process.exitCode = 1;`;
const DEAF = `console.log("loading"); setInterval(() => undefined, 1000);`;

interface Place extends AsyncDisposable {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
}

async function placeWith(script?: string): Promise<Place> {
  const root = await mkdtemp(path.join(tmpdir(), "harness-serve-"));
  const bin = path.join(root, "bin");
  await mkdir(bin);
  if (script !== undefined) {
    await writeFile(path.join(bin, "ollama"), `#!${process.execPath}\n${script}`);
    await chmod(path.join(bin, "ollama"), 0o755);
  }
  return {
    root,
    env: { PATH: bin },
    logFile: path.join(root, "logs", "ollama.log"),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

async function freeAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return `http://127.0.0.1:${port}`;
}

const never = (): AbortSignal => new AbortController().signal;

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("an installed Ollama is started in its own process group, with its log, and answers", async () => {
  await using place = await placeWith(SERVER);
  const baseUrl = await freeAddress();
  const result = await startInstalledOllama({ ...place, baseUrl, signal: never() });
  assert.equal(result.kind, "started");
  if (result.kind !== "started") return;
  try {
    const response = await fetch(`${baseUrl}/api/version`);
    assert.deepEqual(await response.json(), { version: "0.12.6" });
    assert.equal(await readFile(place.logFile, "utf8"), `args serve\nlistening on ${baseUrl}\n`);
  } finally {
    process.kill(-result.pid, "SIGKILL");
  }
});

test("an Ollama that exits at once is a failure with its output, and nothing of an older log", async () => {
  await using place = await placeWith(BROKEN);
  await mkdir(path.dirname(place.logFile));
  await writeFile(place.logFile, "an older failure\n");
  const result = await startInstalledOllama({ ...place, baseUrl: await freeAddress(), signal: never() });
  assert.deepEqual(result, {
    kind: "failed",
    reason: "it ended at once (exit code 1): Error: listen tcp: bind: permission denied",
  });
});

test("an Ollama that does not answer in time is ended, not left running", async () => {
  await using place = await placeWith(`console.log(process.pid);${DEAF}`);
  const baseUrl = await freeAddress();
  const result = await startInstalledOllama({ ...place, baseUrl, signal: never(), waitMs: 1000 });
  const pid = Number.parseInt(await readFile(place.logFile, "utf8"), 10);
  assert.deepEqual(
    { result, alive: isAlive(pid) },
    {
      result: { kind: "failed", reason: `no answer at ${baseUrl} within 1.0 s: ${pid}\nloading` },
      alive: false,
    },
  );
});

test("a cancelled start ends the started process", async () => {
  await using place = await placeWith(DEAF);
  const cancel = new AbortController();
  const baseUrl = await freeAddress();
  const started = startInstalledOllama({ ...place, baseUrl, signal: cancel.signal });
  const said = async (): Promise<string> => readFile(place.logFile, "utf8").catch(() => "");
  for (let left = 500; left > 0 && !(await said()).includes("loading"); left -= 1) await sleep(20);
  cancel.abort();
  assert.deepEqual(await started, { kind: "failed", reason: "cancelled: loading" });
});

test("a program that the system cannot start is a failure", async () => {
  await using place = await placeWith("");
  await writeFile(path.join(place.root, "bin", "ollama"), "#!/no/such/interpreter\n");
  const result = await startInstalledOllama({ ...place, baseUrl: await freeAddress(), signal: never() });
  assert.deepEqual(result, {
    kind: "failed",
    reason: `spawn ${path.join(place.root, "bin", "ollama")} ENOENT`,
  });
});

test("without the program on PATH Ollama is not installed", async () => {
  await using place = await placeWith();
  const baseUrl = await freeAddress();
  assert.deepEqual(await startInstalledOllama({ ...place, baseUrl, signal: never() }), {
    kind: "not-installed",
  });
});

test("nothing is started for another machine, for https, or where something answers", async () => {
  await using place = await placeWith(SERVER);
  await using fake = await startFakeOllama();
  const addresses = ["http://192.0.2.1:11434", "https://127.0.0.1:11434", fake.url];
  const results = addresses.map((baseUrl) => startInstalledOllama({ ...place, baseUrl, signal: never() }));
  const elsewhere = "is not http on this machine, so nothing can be started there";
  assert.deepEqual(await Promise.all(results), [
    { kind: "failed", reason: `http://192.0.2.1:11434 ${elsewhere}` },
    { kind: "failed", reason: `https://127.0.0.1:11434 ${elsewhere}` },
    { kind: "failed", reason: `something already answers at ${fake.url}` },
  ]);
});

test("only an executable file with an absolute path is found", async () => {
  await using place = await placeWith(SERVER);
  await using other = await placeWith();
  await mkdir(path.join(other.root, "bin", "ollama"));
  const bin = path.join(place.root, "bin");
  const found = path.join(bin, "ollama");
  assert.deepEqual(
    await Promise.all([
      findOllama({ PATH: [path.join(other.root, "bin"), bin].join(path.delimiter) }),
      findOllama({ PATH: path.relative(process.cwd(), bin) }),
      findOllama({}),
    ]),
    [found, undefined, undefined],
  );
});

test("nothing in the workspace is started, neither directly nor through a link", async () => {
  await using inside = await placeWith(SERVER);
  await using outside = await placeWith();
  await symlink(path.join(inside.root, "bin", "ollama"), path.join(outside.root, "bin", "ollama"));
  const paths = [inside, outside].map(({ env }) => env);
  const found = (workspace: string): Promise<(string | undefined)[]> =>
    Promise.all(paths.map((env) => findOllama(env, workspace)));
  assert.deepEqual(
    [await found(inside.root), await found(outside.root), await found(path.dirname(inside.root) + "/else")],
    [
      [undefined, undefined],
      [path.join(inside.root, "bin", "ollama"), undefined],
      paths.map(({ PATH }) => path.join(PATH ?? "", "ollama")),
    ],
  );
});
