import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { startQdrant } from "../fakes/qdrant-server.ts";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { indexed, paths, search } from "./index-of.ts";
import { harness } from "./run-command.ts";

const FILES = { "src/door.ts": "export function openPortcullis(): void {}\n" };

test("an index in Qdrant is replaced by the embedded store when Qdrant is gone", { skip }, async () => {
  await using place = await household(FILES);
  const server = await startQdrant();
  await using _ = server;
  const env = { HARNESS_SEARCH_URL: server.url };
  const first = await search(place, "portcullis", { env });
  assert.deepEqual([paths(first), first.store, first.stale], [["src/door.ts"], "qdrant", false]);
  await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
  assert.deepEqual(paths(await search(place, "crocodile", { env })), ["src/door.ts"]);
  const asked = await search(place, "crocodile", { env, flags: ["--store", "embedded"] });
  assert.deepEqual([paths(asked), asked.store, asked.stale], [["src/door.ts"], "embedded", false]);
  const named = await search(place, "crocodile", { env, flags: ["--store", "qdrant"] });
  assert.deepEqual([paths(named), named.store, named.stale], [["src/door.ts"], "qdrant", false]);
  await server.close();
  const gone = await search(place, "crocodile", { env });
  assert.deepEqual([paths(gone), gone.store, gone.stale], [["src/door.ts"], "embedded", false]);
  assert.match(gone.stderr, /the Qdrant that holds the index cannot be used/);
  const wanted = await harness(place, ["index", "--json", "--store", "qdrant"], { env });
  assert.equal(wanted.code, 1, wanted.stdout);
});

/** What a command loaded, by the file names of the bundle. */
async function loaded(
  place: Awaited<ReturnType<typeof household>>,
  words: readonly string[],
): Promise<string> {
  const folder = place.at("coverage");
  await mkdir(folder, { recursive: true });
  const ran = await harness(place, words, { env: { NODE_V8_COVERAGE: folder } });
  assert.equal(ran.code, 0, ran.stderr);
  const urls = readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(path.join(folder, name), "utf8")) as {
      result: { url: string }[];
    };
    return result.map(({ url }) => url).filter((url) => url.startsWith("file:"));
  });
  return urls.map((url) => readFileSync(fileURLToPath(url), "utf8")).join("\n");
}

test("a search without changes loads neither parser nor engine", { skip }, async () => {
  await using place = await household(FILES);
  await indexed(place);
  const parser = /tree-sitter-\$\{|web-tree-sitter\.wasm/;
  const light = await loaded(place, ["search", "--json", "portcullis"]);
  assert.doesNotMatch(light, parser);
  assert.doesNotMatch(light, /docker-modem/i);
  assert.ok(existsSync(place.at("coverage")));
  await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
  const heavy = await loaded(place, ["search", "--json", "crocodile"]);
  assert.match(heavy, parser, "the twin: what is looked for is found where it is loaded");
});

test("--watch notices a change, and Ctrl-C ends it", { skip }, async () => {
  await using place = await household(FILES);
  const marker = place.at("work/src/new.ts");
  const seen: string[] = [];
  const ran = await harness(place, ["index", "--watch", "--json", "--no-embed"], {
    whenMade: [
      place.at(".local/state/harness/search"),
      (child) => {
        child.stdout?.on("data", (bytes: Buffer) => {
          seen.push(...bytes.toString().trim().split("\n"));
          if (seen.length === 1) void appendFile(marker, "export const crocodile = 1;\n");
          if ((JSON.parse(seen.at(-1) ?? "{}") as { files: number }).files === 2) child.kill("SIGINT");
        });
      },
    ],
  });
  assert.equal(ran.code, 130, ran.stderr);
  // The last line says that it was interrupted.
  const counts = seen.map((line) => (JSON.parse(line) as { files?: number }).files);
  assert.deepEqual([counts[0], counts.at(-2), counts.at(-1)], [1, 2, undefined]);
});

test("--watch continues when its folder is removed and recreated", { skip }, async () => {
  await using place = await household(FILES);
  // So many that threads are started for them.
  const anew = [...Array(60).keys()].map((index) => place.at(`work/alligator${index}.ts`));
  const again = async (): Promise<void> => {
    await rm(place.at("work"), { recursive: true });
    await mkdir(place.at("work"));
    await Promise.all(anew.map((file) => writeFile(file, "export const alligator = 1;\n")));
  };
  const seen: number[] = [];
  const ran = await harness(place, ["index", "--watch", "--json", "--no-embed"], {
    whenMade: [
      place.at(".local/state/harness/search"),
      (child) => {
        child.stdout?.on("data", (bytes: Buffer) => {
          for (const line of bytes.toString().trim().split("\n")) {
            const { files } = JSON.parse(line) as { files?: number };
            if (files !== undefined) seen.push(files);
            if (files === 1) void again();
            if (files === anew.length) child.kill("SIGINT");
          }
        });
        child.stderr?.on("data", (bytes: Buffer) => {
          if (bytes.toString().includes("could not be brought up to date")) child.kill("SIGINT");
        });
      },
    ],
  });
  assert.deepEqual([seen.at(-1), ran.code], [anew.length, 130], ran.stderr);
});

test("--watch continues while its store is unavailable, and reports it once", { skip }, async () => {
  await using place = await household(FILES);
  const server = await startQdrant();
  await using _ = server;
  const words = ["index", "--watch", "--json", "--no-embed", "--store", "qdrant"];
  const ran = await harness(place, words, {
    env: { HARNESS_SEARCH_URL: server.url },
    whenMade: [
      place.at(".local/state/harness/search"),
      (child) => {
        child.stdout?.once("data", () => void server.close());
        child.stderr?.on("data", (bytes: Buffer) => {
          if (/trying again/.test(bytes.toString())) child.kill("SIGINT");
        });
      },
    ],
  });
  assert.equal(ran.code, 130, ran.stderr);
  assert.match(ran.stderr, /could not be brought up to date, trying again: Qdrant at .* cannot be reached/);
});
