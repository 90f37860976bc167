import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, { closeSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import {
  type Links,
  newFile,
  NotRegularError,
  openRegular,
  openRegularSync,
  readRegular,
  readRegularHead,
  readRegularSync,
  readWhole,
  replaceFile,
  replaceFileSync,
  TooLargeError,
} from "../../src/platform/safe-files.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";

const MAX = 16;

/** Each way to open a file; it returns the file's text. */
const OPENERS: Readonly<Record<string, (file: string, links: Links) => Promise<string>>> = {
  openRegular: async (file, links) => {
    await using opened = await openRegular(file, links);
    return await opened.handle.readFile("utf8");
  },
  openRegularSync: (file, links) =>
    new Promise((resolve) => {
      const { descriptor } = openRegularSync(file, links);
      resolve(readFileSync(descriptor, "utf8"));
      closeSync(descriptor);
    }),
  readRegular: async (file, links) => (await readRegular(file, { links, max: MAX })).toString(),
  readRegularSync: (file, links) =>
    new Promise((resolve) => {
      resolve(readRegularSync(file, { links, max: MAX }).toString());
    }),
  readRegularHead: async (file, links) => (await readRegularHead(file, { links, max: MAX })).toString(),
};

/** What is at the file's path, and how it is refused; undefined: it is read. */
const PLACES: readonly (readonly [
  name: string,
  make: (place: Scratch) => Promise<string> | string,
  links: Links,
  refused: ((thrown: unknown) => boolean) | undefined,
])[] = [
  ["a file", (place) => place.write("a", "text"), "refuse", undefined],
  ["a FIFO that nobody writes to", fifo, "follow", isSpecial],
  ["a FIFO that nobody writes to, no link", fifo, "refuse", isSpecial],
  ["a device that never ends", () => "/dev/zero", "follow", isSpecial],
  ["a folder", (place) => place.path, "follow", isFolder],
  ["a link to a file, where links are refused", linked, "refuse", code("ELOOP")],
  ["a link to a file, where links are followed", linked, "follow", undefined],
  ["a link to a FIFO", (place) => linkTo(place, fifo(place)), "follow", isSpecial],
  ["a link to a folder", (place) => linkTo(place, place.path), "follow", isFolder],
  ["a link to nothing", (place) => linkTo(place, place.at("gone")), "follow", code("ENOENT")],
  ["a link to itself", (place) => linkTo(place, place.at("link")), "follow", code("ELOOP")],
  ["nothing", (place) => place.at("gone"), "refuse", code("ENOENT")],
  ["a file below a file", async (place) => `${await place.write("a", "text")}/b`, "refuse", code("ENOTDIR")],
];

function fifo(place: Scratch): string {
  execFileSync("mkfifo", [place.at("fifo")]);
  return place.at("fifo");
}

const linkTo = (place: Scratch, target: string): string => {
  symlinkSync(target, place.at("link"));
  return place.at("link");
};

async function linked(place: Scratch): Promise<string> {
  return linkTo(place, await place.write("a", "text"));
}

function isSpecial(thrown: unknown): boolean {
  return thrown instanceof NotRegularError && thrown.what === "special";
}

function isFolder(thrown: unknown): boolean {
  return thrown instanceof NotRegularError && thrown.what === "folder";
}

function code(wanted: string): (thrown: unknown) => boolean {
  return (thrown) => thrown instanceof Error && "code" in thrown && thrown.code === wanted;
}

const descriptors = (): number => readdirSync("/proc/self/fd").length;

for (const [opener, open] of Object.entries(OPENERS))
  for (const [name, make, links, refused] of PLACES)
    test(`${opener} of ${name} (links: ${links}): ${refused === undefined ? "its text" : "refused"}`, async () => {
      await using place = await scratch();
      const file = await make(place);
      const before = descriptors();
      if (refused === undefined) assert.equal(await open(file, links), "text");
      else await assert.rejects(open(file, links), refused);
      assert.equal(descriptors(), before, "a descriptor is left open");
    });

test("a file of the maximum size is read, a larger one is refused, and its head can be read", async () => {
  await using place = await scratch({ fits: "x".repeat(MAX), large: "y".repeat(MAX + 1) });
  const bounds = { links: "refuse", max: MAX } as const;
  assert.equal((await readRegular(place.at("fits"), bounds)).length, MAX);
  assert.equal(readRegularSync(place.at("fits"), bounds).length, MAX);
  const isTooLarge = (thrown: unknown): boolean => thrown instanceof TooLargeError && thrown.size === MAX + 1;
  await assert.rejects(readRegular(place.at("large"), bounds), isTooLarge);
  assert.throws(() => readRegularSync(place.at("large"), bounds), isTooLarge);
  assert.equal((await readRegularHead(place.at("large"), bounds)).toString(), "y".repeat(MAX));
});

test("a check sees the opened file, and its error leaves nothing open", async () => {
  await using place = await scratch({ a: "text" });
  const before = descriptors();
  const check = ({ size }: { readonly size: number }): void => {
    assert.equal(descriptors(), before + 1);
    throw new Error(`not ${size} bytes`);
  };
  assert.throws(
    () => readRegularSync(place.at("a"), { links: "refuse", max: MAX, check }),
    /^Error: not 4 bytes$/,
  );
  assert.equal(descriptors(), before);
});

test("a file that is removed or replaced after opening is read as it was opened", async () => {
  await using place = await scratch({ a: "first", b: "first" });
  await using opened = await openRegular(place.at("a"), "refuse");
  unlinkSync(place.at("a"));
  assert.equal(await opened.handle.readFile("utf8"), "first");
  const { descriptor, stats } = openRegularSync(place.at("b"), "refuse");
  await replaceFile(place.at("b"), "second", { lasts: "never" });
  assert.deepEqual([readFileSync(descriptor, "utf8"), stats.size], ["first", 5]);
  closeSync(descriptor);
  assert.equal(await place.read("b"), "second");
});

type Replace = (...given: Parameters<typeof replaceFile>) => Promise<void>;
const REPLACERS: Readonly<Record<string, Replace>> = {
  replaceFile,
  replaceFileSync: (...given) =>
    new Promise((resolve) => {
      replaceFileSync(...given);
      resolve();
    }),
};

for (const [name, replace] of Object.entries(REPLACERS)) {
  test(`${name} makes a private file where there is none, and leaves nothing beside it`, async () => {
    await using place = await scratch();
    await replace(place.at("a"), "text", { lasts: "name" });
    assert.deepEqual([await place.read("a"), statSync(place.at("a")).mode & 0o777], ["text", 0o600]);
    assert.deepEqual(readdirSync(place.path), ["a"]);
  });

  test(`${name} gives the file the requested mode, whatever the umask`, async () => {
    await using place = await scratch({ a: "old" });
    await replace(place.at("a"), Buffer.from("new"), { mode: 0o666, lasts: "content" });
    assert.deepEqual([await place.read("a"), statSync(place.at("a")).mode & 0o777], ["new", 0o666]);
  });

  test(`${name} replaces a link, and leaves its target unchanged`, async () => {
    await using place = await scratch({ target: "kept" });
    symlinkSync(place.at("target"), place.at("link"));
    await replace(place.at("link"), "new", { lasts: "never" });
    assert.deepEqual([await place.read("link"), await place.read("target")], ["new", "kept"]);
    assert.ok(statSync(place.at("link")).ino !== statSync(place.at("target")).ino);
  });

  test(`${name} leaves the file unchanged, and nothing beside it, where it cannot be replaced`, async () => {
    await using place = await scratch();
    await mkdir(place.at("a", "full"), { recursive: true });
    await assert.rejects(replace(place.at("a"), "new", { lasts: "content" }), code("EISDIR"));
    assert.deepEqual(readdirSync(place.path), ["a"]);
    await assert.rejects(replace(place.at("gone", "a"), "new", { lasts: "content" }), code("ENOENT"));
  });

  test(`${name} overwrites what a killed process left under the given temporary name`, async () => {
    await using place = await scratch({ a: "old", "a.new": "half of someth" });
    await replace(place.at("a"), "new", { aside: place.at("a.new"), lasts: "content" });
    assert.deepEqual([readdirSync(place.path), await place.read("a")], [["a"], "new"]);
  });
}

test("content that must survive a power cut is flushed before the rename, and the name before the call returns", async (t) => {
  await using place = await scratch();
  const seen: string[] = [];
  const { fsyncSync, renameSync, readlinkSync } = fs;
  t.mock.method(fs, "fsyncSync", (descriptor: number) => {
    const file = readlinkSync(`/proc/self/fd/${descriptor}`);
    seen.push(file === place.path ? "folder" : "content");
    fsyncSync(descriptor);
  });
  t.mock.method(fs, "renameSync", (from: string, to: string) => {
    seen.push("name");
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  for (const lasts of ["never", "content", "name"] as const)
    replaceFileSync(place.at("a"), "text", { lasts });
  t.mock.restoreAll();
  syncBuiltinESMExports();
  assert.deepEqual(seen, ["name", "content", "name", "content", "name", "folder"]);
});

test("a file that grows while it is read gives what it had when it was opened", async () => {
  await using place = await scratch();
  const file = await place.write("a", "text");
  await using opened = await openRegular(file, "refuse");
  fs.appendFileSync(file, "x".repeat(10 * MAX));
  assert.equal((await readWhole(opened, MAX)).toString(), "text");
});

test("a file that shrinks while it is read gives what is left", async () => {
  await using place = await scratch();
  const file = await place.write("a", "text");
  await using opened = await openRegular(file, "refuse");
  fs.truncateSync(file, 2);
  assert.equal((await readWhole(opened, MAX)).toString(), "te");
});

test("a file that reports no size but has more than may be read is refused", async () => {
  await assert.rejects(readRegular("/proc/self/status", { links: "follow", max: MAX }), TooLargeError);
  assert.throws(() => readRegularSync("/proc/self/status", { links: "follow", max: MAX }), TooLargeError);
  assert.match(
    (await readRegular("/proc/self/status", { links: "follow", max: 2 ** 16 })).toString(),
    /^Name:/,
  );
});

test("an error names the file that was to be written, not the one that it is written to first", async () => {
  await using place = await scratch();
  const file = place.at("no/such/file");
  const writers = [
    () => newFile(file, "x"),
    () => replaceFile(file, "x", { lasts: "never" }),
    async () => Promise.resolve(replaceFileSync(file, "x", { lasts: "never" })),
  ];
  for (const write of writers) {
    const { message } = await write().then(
      () => new Error("written"),
      (thrown: Error) => thrown,
    );
    assert.match(message, /^ENOENT: .*no\/such\/file'$/);
  }
});
