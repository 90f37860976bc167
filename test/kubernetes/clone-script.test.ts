import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { CLONE_SCRIPT, cloneLine, type CloneSource } from "../../src/kubernetes/batch-job.ts";
import { gitBackend } from "../fixtures/git-backend.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";

/** The script that runs before a loop, run by this machine's shell. */

async function served(
  place: Scratch,
): Promise<AsyncDisposable & { readonly url: string; readonly first: string }> {
  const work = place.at("source");
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-C", work, "-c", "user.name=t", "-c", "user.email=t@example.org", ...words], {
      env: { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
      encoding: "utf8",
    }).trim();
  await place.write("source/a.txt", "one\n");
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "first");
  const first = git("rev-parse", "HEAD");
  git("tag", "v1");
  await place.write("source/a.txt", "two\n");
  git("commit", "-qam", "second");
  git("clone", "-q", "--bare", work, place.at("repos/r.git"));
  execFileSync("git", ["-C", place.at("repos/r.git"), "config", "uploadpack.allowAnySHA1InWant", "true"]);
  const server = createServer((request, response) => gitBackend(place.at("repos"), request, response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/r.git`,
    first,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function cloned(place: Scratch, rows: readonly CloneSource[], index: number): Promise<number> {
  await place.write("rows/clones-0000.tsv", rows.map((row) => `${cloneLine(row)}\n`).join(""));
  await place.write("told", "");
  const child = spawn("/bin/sh", ["-c", CLONE_SCRIPT], {
    env: {
      PATH: process.env["PATH"],
      HOME: place.at("home"),
      HARNESS_CLONES: place.at("rows"),
      HARNESS_TREE: place.at("trees/tree"),
      HARNESS_TOLD: place.at("told"),
      JOB_COMPLETION_INDEX: String(index),
    },
    stdio: "ignore",
  });
  const [code] = (await once(child, "exit")) as [number];
  return code;
}

const read = (folder: string): Promise<string> => readFile(`${folder}/a.txt`, "utf8");

test("each row's tree is cloned at its revision to where its environment was built, or else to the common folder", async () => {
  await using place = await scratch();
  await using host = await served(place);
  const { url, first } = host;
  const own = place.at("above/of me/shop");
  const rows: readonly CloneSource[] = [
    { url, ref: null },
    { url, ref: null, tree: own },
    { url, ref: "v1", tree: own },
    { url, ref: first },
    { url: url.replace("r.git", "gone.git"), ref: null, tree: own },
  ];
  assert.equal(await cloned(place, rows, 0), 0);
  assert.equal(await read(place.at("trees/tree")), "two\n");
  for (const [index, folder, text] of [
    [1, own, "two\n"],
    [2, own, "one\n"],
    [3, place.at("trees/tree"), "one\n"],
  ] as const) {
    assert.equal(await cloned(place, rows, index), 0, await readFile(place.at("told"), "utf8"));
    assert.equal(await read(folder), text);
  }
  assert.equal(await cloned(place, rows, 4), 2);
  assert.match(await readFile(place.at("told"), "utf8"), /gone\.git: .*not found/);
});
