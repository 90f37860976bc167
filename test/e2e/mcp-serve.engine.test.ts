import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import test, { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { COMPILED } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { auditLines, harness } from "./run-command.ts";

/** `harness mcp serve` as another agent starts it, with the client of the protocol's own SDK. */

const MARK = "RAN-INSIDE";
const FILES = { "a.txt": "one\ntwo\n", "code.ts": "export const answer = 42;\n", "b.txt": "b\n" };

interface Server extends AsyncDisposable {
  readonly place: Scratch;
  readonly client: Client;
  readonly call: Call;
  readonly pid: () => number;
}
type Called = {
  readonly isError: boolean;
  readonly text: string;
  readonly about: Readonly<Record<string, unknown>>;
};
type Call = (name: string, args?: Readonly<Record<string, unknown>>, signal?: AbortSignal) => Promise<Called>;

const envOf = (place: Scratch): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: place.path,
  ...COMPILED,
});

async function serving(flags: readonly string[] = [], given?: Scratch): Promise<Server> {
  const place = given ?? (await household(FILES));
  const client = new Client({ name: "other-agent", version: "3" });
  const transport = new StdioClientTransport({
    command: path.join(ROOT, "bin/harness"),
    args: ["mcp", "serve", "--quiet", ...flags],
    cwd: place.at("work"),
    env: envOf(place),
    stderr: "ignore",
  });
  await client.connect(transport);
  return {
    place,
    client,
    pid: () => transport.pid ?? 0,
    call: async (name, args = {}, signal) => {
      const options = signal === undefined ? {} : { signal };
      const { isError, content, _meta } = await client.callTool({ name, arguments: args }, options);
      const [first] = content;
      const about = Object.entries(_meta ?? {}).map(
        ([key, value]) => [key.replace("harness/", ""), value] as const,
      );
      return {
        isError: isError === true,
        text: first?.type === "text" ? first.text : "",
        about: Object.fromEntries(about),
      };
    },
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await place[Symbol.asyncDispose]();
    },
  };
}

/** One box for all that only needs one. */
const shared: { server?: Server } = {};
const server = (): Server => shared.server ?? assert.fail("there is no server");
before(async () => {
  if (skip === false) shared.server = await serving();
});
after(() => shared.server?.[Symbol.asyncDispose]());

/** Lines of the audit about one call. */
const auditOf = (of: Pick<Server, "place">, { about }: Called) =>
  auditLines(of.place).filter((line) => line["call"] === about["call"]);

test("a command runs in the box with another host name, another user and no network", { skip }, async () => {
  const { text, isError, about } = await server().call("bash", {
    command: "hostname; id -u; ls /sys/class/net; pwd; echo done > made.txt",
  });
  assert.equal(isError, false, text);
  assert.deepEqual(text.split("\n").slice(0, 4), ["sandbox", "1000", "lo", server().place.at("work")]);
  assert.equal(await server().place.read("work/made.txt"), "done\n");
  assert.equal(about["exit_code"], 0);
});

interface Way {
  readonly allowed: Readonly<Record<string, unknown>>;
  readonly says: RegExp;
  readonly denied?: Readonly<Record<string, unknown>>;
  /** What there would be if it had been done. */
  readonly effect?: string;
}

/** Each tool that is served, with what it may and what it may not. */
const WAYS: Readonly<Record<string, Way>> = {
  read_file: { allowed: { path: "a.txt" }, says: /one/, denied: { path: "/etc/shadow" } },
  list_dir: { allowed: { path: "." }, says: /code\.ts/, denied: { path: "/root" } },
  glob: { allowed: { pattern: "*.ts" }, says: /code\.ts/, denied: { pattern: "*", path: "/etc" } },
  grep: {
    allowed: { pattern: "answer" },
    says: /code\.ts/,
    denied: { pattern: "root", path: "/etc/passwd" },
  },
  edit_file: {
    allowed: { path: "a.txt", old: "two", new: "2" },
    says: /a\.txt/,
    denied: { path: "/etc/hosts", old: "localhost", new: "x" },
  },
  write_file: {
    allowed: { path: "new.txt", content: "new\n" },
    says: /new\.txt/,
    denied: { path: ".git/hooks/pre-commit", content: "x" },
    effect: ".git/hooks/pre-commit",
  },
  apply_patch: {
    allowed: { patch: "*** Begin Patch\n*** Add File: patched.txt\n+p\n*** End Patch\n" },
    says: /patched\.txt/,
    denied: { patch: "*** Begin Patch\n*** Add File: .harness/config.json\n+{}\n*** End Patch\n" },
    effect: ".harness/config.json",
  },
  bash: {
    allowed: { command: `echo ${MARK} | tee ran.txt` },
    says: new RegExp(MARK),
    denied: { command: "rm -rf / --no-preserve-root; touch refused.txt" },
    effect: "refused.txt",
  },
  semantic_search: { allowed: { query: "the answer" }, says: /code\.ts/ },
  show_full: { allowed: { id: "o1" }, says: /no output "o1"|\[characters/ },
};

test("every offered tool is tested below", { skip }, async () => {
  const { tools } = await server().client.listTools();
  assert.deepEqual(tools.map(({ name }) => name).toSorted(), Object.keys(WAYS).toSorted());
});

for (const [name, { allowed, says, denied, effect }] of Object.entries(WAYS)) {
  test(`${name} is judged before it runs, and both are in the audit`, { skip }, async () => {
    const done = await server().call(name, allowed);
    assert.match(done.text, says);
    const lines = auditOf(server(), done);
    assert.deepEqual(
      lines.map(({ kind }) => kind).filter((kind) => kind !== "files.written"),
      ["decision", "call.started", "call.ended"],
      JSON.stringify(lines),
    );
    assert.equal(lines[0]?.["runs"], true);
  });
  if (denied === undefined) continue;
  test(
    `${name} is refused where it is not allowed, with the reason, no effect, and an audit line`,
    { skip },
    async () => {
      const refused = await server().call(name, denied);
      assert.equal(refused.isError, true);
      assert.equal(refused.about["kind"], "denied", refused.text);
      assert.match(refused.text, /\(rule [\w.-]+\).*It was not run/s);
      assert.ok(effect === undefined || !existsSync(server().place.at("work", effect)));
      const lines = auditOf(server(), refused);
      assert.deepEqual(
        lines.map(({ kind, runs }) => [kind, runs]),
        [
          ["decision", false],
          ["call.ended", undefined],
        ],
      );
    },
  );
}

test(
  "an uncontained call that requires confirmation is refused with a remedy, and a contained one runs",
  { skip },
  async () => {
    const net = await server().call("bash", { command: "curl -m 2 http://192.0.2.1/" });
    assert.equal(net.about["kind"], "denied");
    assert.match(net.text, /nobody is there to be asked.*rule network.*--allow-domain/s);
    const twin = await server().call("bash", { command: "eval \"$(echo 'echo contained')\"" });
    assert.equal(twin.isError, false, twin.text);
    assert.match(twin.text, /contained/);
  },
);

test(
  "a call that requires confirmation runs if it is contained, and never with --on-ask refuse",
  { skip },
  async () => {
    const asked = { command: 'eval "$(echo touch ran)"' };
    assert.equal((await server().call("bash", asked)).isError, false);
    await using strict = await serving(["--on-ask", "refuse"]);
    const refused = await strict.call("bash", asked);
    assert.deepEqual([refused.isError, refused.about["kind"]], [true, "denied"], refused.text);
    assert.ok(existsSync(server().place.at("work/ran")) && !existsSync(strict.place.at("work/ran")));
    assert.equal((await strict.call("read_file", { path: "a.txt" })).isError, false);
  },
);

test("a secret in a command's output is masked", { skip }, async () => {
  const key = `ghp_${"a1B2".repeat(9)}`;
  const { text } = await server().call("bash", { command: `printf '%s%s' ghp_ ${key.slice(4)}` });
  assert.ok(!text.includes(key), text);
});

test("the same call may be repeated", { skip }, async () => {
  for (let n = 0; n < 6; n += 1) {
    const { text, isError } = await server().call("bash", { command: "cat b.txt" });
    assert.deepEqual([text.trim(), isError], ["b", false]);
  }
});

test("a long output is cut, and show_full shows the rest", { skip }, async () => {
  const { text, about } = await server().call("bash", { command: "seq 20000" });
  assert.ok(text.length < 31_000);
  assert.match(text, /characters left out; show_full/);
  const rest = await server().call("show_full", { id: about["full"], offset: 40_000 });
  assert.match(rest.text, /\n8\d\d\d\n/);
});

test("the folder and exported variables persist between calls", { skip }, async () => {
  await server().call("bash", { command: "mkdir -p deep && cd deep && export KEPT=yes" });
  const { text } = await server().call("bash", { command: "pwd; echo $KEPT; cd .." });
  assert.deepEqual(text.trim().split("\n"), [server().place.at("work/deep"), "yes"]);
});

test("a cancelled call ends its command, and the next one is served", { skip }, async () => {
  const given = new AbortController();
  const long = server().call(
    "bash",
    { command: "echo begun > begun.txt; sleep 300; echo late > late.txt" },
    given.signal,
  );
  while (!existsSync(server().place.at("work/begun.txt"))) await sleep(20);
  given.abort();
  await assert.rejects(long);
  const { text } = await server().call("bash", { command: "pgrep -x sleep || echo none" });
  assert.match(text, /none/);
  assert.ok(!existsSync(server().place.at("work/late.txt")));
  const cancelled = auditLines(server().place).filter(
    ({ kind, how }) => kind === "call.ended" && how === "cancelled",
  );
  assert.equal(cancelled.length, 1);
});

test(
  "when the client leaves, the box is removed, the session stays, and undo takes it back",
  { skip },
  async () => {
    const place = await household(FILES);
    const other = await serving([], place);
    await using _ = other;
    const { about } = await other.call("bash", { command: "echo changed > a.txt; rm b.txt; echo x > c.txt" });
    assert.equal((await boxesOver(place.at("work"))).length, 1);
    await other.client.close();
    while ((await boxesOver(place.at("work"))).length > 0) await sleep(50);
    const id = String(about["session"]);
    const shown = await harness(place, ["sessions", "show", id, "--json"]);
    const { title, status, model, provider } = JSON.parse(shown.stdout) as Record<string, unknown>;
    assert.deepEqual(
      { title, status, model, provider },
      { title: "Served over MCP to other-agent 3", status: "done", model: "other-agent 3", provider: "mcp" },
    );
    const undone = await harness(place, ["undo", id]);
    assert.equal(undone.code, 0, undone.stderr);
    assert.deepEqual(
      [await place.read("work/a.txt"), await place.read("work/b.txt")],
      [FILES["a.txt"], FILES["b.txt"]],
    );
    assert.ok(!existsSync(place.at("work/c.txt")));
    assert.equal(auditLines(other.place).at(-1)?.["kind"], "closed");
  },
);

test(
  "in read-only mode reading works, and writing is refused by policy and by the box",
  { skip },
  async () => {
    await using other = await serving(["--mode", "read-only"]);
    assert.match((await other.call("read_file", { path: "a.txt" })).text, /one/);
    const refused = await other.call("write_file", { path: "w.txt", content: "x" });
    assert.equal(refused.about["kind"], "denied", refused.text);
    const shell = await other.call("bash", { command: "echo x > w.txt" });
    assert.equal(shell.isError, true);
    assert.ok(!existsSync(other.place.at("work/w.txt")));
  },
);

test("a lost box is reported, and the next call gets a new one", { skip }, async () => {
  const { engine } = await import("../fixtures/engine-api.ts");
  await using other = await serving();
  await other.call("bash", { command: "echo first > first.txt" });
  const [box = ""] = await boxesOver(other.place.at("work"));
  const waiting = other.call("bash", { command: "touch waits.txt; sleep 100" });
  while (!existsSync(other.place.at("work/waits.txt"))) await sleep(20);
  await engine.api.getContainer(box).remove({ force: true });
  const lost = await waiting;
  assert.deepEqual([lost.isError, /no result: .*lost/.test(lost.text)], [true, true], lost.text);
  // The client did not give it up.
  assert.deepEqual([lost.about["kind"], lost.about["cause"]], ["failed", "program"]);
  const again = await other.call("bash", { command: "cat first.txt" });
  assert.equal(again.text.trim(), "first");
  assert.equal(again.about["session"], lost.about["session"]);
  const ends = auditLines(other.place).filter(({ kind }) => kind === "run.finished");
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["sandbox"],
  );
});

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "rude", version: "1" } },
};

/** Without any SDK: what is written is written as it is. */
async function rawly(place: Scratch) {
  const child = spawn(path.join(ROOT, "bin/harness"), ["mcp", "serve"], {
    cwd: place.at("work"),
    env: envOf(place),
    timeout: 180_000,
    killSignal: "SIGKILL",
  });
  const texts = { out: "", err: "" };
  child.stdout.on("data", (chunk: Buffer) => (texts.out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (texts.err += chunk.toString()));
  const ended = once(child, "close").then(([code]) => code as number | null);
  const messages = (): readonly Record<string, unknown>[] =>
    texts.out
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const answer = async (id: unknown): Promise<Record<string, unknown>> => {
    for (;;) {
      const found = messages().find((each) => each["id"] === id);
      if (found !== undefined) return found;
      assert.deepEqual([child.exitCode, child.signalCode], [null, null], texts.err);
      await sleep(10);
    }
  };
  const put = (message: object | string): void =>
    void child.stdin.write(typeof message === "string" ? message : `${JSON.stringify(message)}\n`);
  const gone = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  return { child, texts, ended, messages, answer, put, [Symbol.asyncDispose]: gone };
}

test(
  "garbage, floods and long lines end nothing, stdout contains only messages, and calls are served",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using raw = await rawly(place);
    const { child, texts, ended, messages, answer, put } = raw;
    put("garbage\n\u0000\u0007\n[]\n{}\n");
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    put(
      `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bash","arguments":{"x":${deep}}}}\n`,
    );
    put(INITIALIZE);
    await answer(0);
    put({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: 7 } });
    put({ jsonrpc: "2.0", id: 2, method: "tools/destroy" });
    for (let n = 0; n < 12; n += 1) put("z".repeat(1024 * 1024));
    put("\n");
    for (let id = 100; id < 400; id += 1)
      put({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name: "bash", arguments: { command: "true" } },
      });
    put({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "bash", arguments: { wrong: 1 } } });
    for (let id = 100; id < 400; id += 1) await answer(id);
    put({
      jsonrpc: "2.0",
      id: 4,
      method: "tools/call",
      params: { name: "bash", arguments: { command: "printf '\\302\\2331m \\033[2J'" } },
    });
    const served = JSON.stringify(await answer(4));
    assert.match(served, /"isError":false/);
    assert.doesNotMatch(texts.out, /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/);
    assert.ok(messages().every((each) => each["jsonrpc"] === "2.0"));
    const flooded = messages().filter((each) => typeof each["id"] === "number" && each["id"] >= 100);
    assert.equal(flooded.length, 300);
    child.stdin.end();
    assert.equal(await ended, 0, texts.err);
    assert.deepEqual(await boxesOver(place.at("work")), []);
  },
);

test("SIGTERM ends running calls and removes the box, and sets the exit code", { skip }, async () => {
  await using place = await household(FILES);
  await using raw = await rawly(place);
  const { child, texts, ended, answer, put } = raw;
  put(INITIALIZE);
  await answer(0);
  put({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "bash", arguments: { command: "touch up.txt; sleep 300" } },
  });
  while (!existsSync(place.at("work/up.txt"))) await sleep(20);
  child.kill("SIGTERM");
  assert.equal(await ended, 143, texts.err);
  assert.deepEqual(await boxesOver(place.at("work")), []);
  const last = auditLines(place).find(({ kind }) => kind === "run.finished");
  assert.equal(last?.["status"], "interrupted");
});

test("the user's hooks apply to a client's calls", { skip }, async () => {
  const place = await household(FILES);
  const veto = {
    event: "PreToolUse",
    tools: "*",
    name: "watch",
    command: "grep -q forbidden && exit 2; true",
  };
  await place.write(".config/harness/config.json", JSON.stringify({ hooks: [veto] }));
  await using server = await serving([], place);
  const { text, isError } = await server.call("bash", { command: "touch forbidden" });
  assert.deepEqual([isError, existsSync(place.at("work", "forbidden"))], [true, false]);
  assert.match(text, /^Refused by a hook: the hook watch/);
  assert.equal((await server.call("bash", { command: "touch allowed" })).isError, false);
  assert.ok(existsSync(place.at("work", "allowed")));
});

test("with an overlay changes stay in the session until they are applied", { skip }, async () => {
  const place = await household(FILES);
  await using server = await serving(["--isolation", "overlay"], place);
  const { about } = await server.call("bash", { command: "echo changed > a.txt; echo new > n.txt" });
  assert.equal((await server.call("read_file", { path: "n.txt" })).isError, false);
  await server.client.close();
  while ((await boxesOver(place.at("work"))).length > 0) await sleep(50);
  assert.deepEqual(
    [await place.read("work/a.txt"), existsSync(place.at("work/n.txt"))],
    [FILES["a.txt"], false],
  );
  const applied = await harness(place, ["apply", String(about["session"])]);
  assert.equal(applied.code, 0, applied.stderr);
  assert.deepEqual([await place.read("work/a.txt"), await place.read("work/n.txt")], ["changed\n", "new\n"]);
});

test("a client that touches a canary gets no other box", { skip }, async () => {
  const place = await household(FILES);
  await place.write(".config/harness/config.json", JSON.stringify({ canaries: true }));
  await using server = await serving([], place);
  assert.equal((await server.call("bash", { command: "echo quiet" })).isError, false);
  const script = "from pathlib import Path; print((Path.home() / ('.a' + 'ws') / 'credentials').read_text())";
  const touched = await server.call("bash", { command: `python3 -c "${script}"` });
  assert.deepEqual([touched.isError, touched.text.includes("aws_secret_access_key")], [true, false]);
  const next = await server.call("bash", { command: "echo more" });
  assert.equal(next.isError, true);
  assert.match(next.text, /It was not run: .*canary.* AWS credentials/i);
  assert.deepEqual(await boxesOver(place.at("work")), []);
});
