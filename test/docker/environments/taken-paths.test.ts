import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { Engine } from "../../../src/docker/engine.ts";
import { takePaths } from "../../../src/docker/environments/taken-paths.ts";

const BLOCK = 512;

/** A file without content, or the header alone of one that is said to be of that size. */
function entry(name: string, size = 0): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  header.write("0", 156);
  header.write(" ".repeat(8), 148);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

type Archives = Readonly<Record<string, () => Iterable<Buffer> | AsyncIterable<Buffer>>>;

/** An engine that only gives archives; what it was asked for, and the lines that were run. */
function stage(archives: Archives) {
  const asked: string[] = [];
  const ran: string[] = [];
  const stat = Buffer.from(JSON.stringify({ mode: 0o644, linkTarget: "" })).toString("base64");
  const getArchive = ({ path }: { path: string }): Promise<Readable> => {
    asked.push(path);
    const bytes = Readable.from(archives[path]?.() ?? [], { objectMode: false });
    return Promise.resolve(Object.assign(bytes, { headers: { "x-docker-container-path-stat": stat } }));
  };
  const container = { getArchive, remove: () => Promise.resolve() };
  const engine = { api: { createContainer: () => Promise.resolve(container) } } as unknown as Engine;
  const run = async (script: string, input?: AsyncIterable<Uint8Array>): Promise<void> => {
    if (input === undefined) ran.push(script);
    else for await (const _ of input);
  };
  const taking = { engine, image: "sha256:0", labels: {}, run, signal: AbortSignal.timeout(20_000) };
  return { asked, ran, taking };
}

const kit = (...names: readonly string[]) => names.map((name) => entry(`kit/${name}`));
const from = (...paths: readonly string[]) => ({ stage: 0, paths: [...paths], to: "/opt/" });

test("a folder is read once for all patterns, and each pattern keeps its position", async () => {
  const { asked, ran, taking } = stage({ "/kit": () => kit("b.so", "a.so", "c.txt") });
  await takePaths(from("/kit/*.txt", "/etc/own", "/kit/?.so"), taking);
  assert.deepEqual(asked, ["/kit", "/kit/c.txt", "/etc/own", "/kit/a.so", "/kit/b.so"]);
  assert.match(ran.join("\n"), /c\.txt \/opt\/c\.txt\n[\s\S]*own \/opt\/own\n[\s\S]*b\.so \/opt\/b\.so\n/);
  assert.match(ran.at(-1) ?? "", /rm -rf \/\.harness-taken$/);
});

test("five hundred long names are moved by commands short enough for a program", async () => {
  const names = Array.from({ length: 500 }, (_, at) => `${String(at).padStart(3, "0")}${"x".repeat(80)}`);
  const { ran, taking } = stage({ "/kit": () => kit(...names) });
  await takePaths({ ...from("/kit/*"), to: `/opt/${"y".repeat(60)}/` }, taking);
  assert.ok(ran.every((script) => Buffer.byteLength(script) < 128 * 1024));
  assert.equal(ran.join("\n").match(/^cp -a /gm)?.length, 500);
});

test("more than five hundred files are refused, and so is a folder that breaks off or never ends", async () => {
  const names = Array.from({ length: 501 }, (_, at) => String(at));
  const many = stage({ "/kit": () => kit(...names) });
  await assert.rejects(takePaths(from("/kit/*"), many.taking), /more than 500 files match \/kit\/\*$/);

  const broken = stage({ "/kit": () => [entry("kit/a.so", 9000)] });
  await assert.rejects(
    takePaths(from("/kit/*"), broken.taking),
    /^HarnessError: reading \/kit of an image: /,
  );

  const ending = new AbortController();
  async function* zeros(): AsyncGenerator<Buffer> {
    yield entry("kit/a.so", 2 ** 32);
    for (let at = 0; at < 100_000; at += 1) {
      if (at === 100) ending.abort(new Error("^C"));
      yield Buffer.alloc(BLOCK);
    }
    assert.fail("read to its end");
  }
  const endless = stage({ "/kit": zeros });
  await assert.rejects(takePaths(from("/kit/*"), { ...endless.taking, signal: ending.signal }), /\^C/);
});
