import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test, { describe } from "node:test";
import { openStore } from "../../src/sessions/session-store.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

interface Kept extends AsyncDisposable {
  readonly place: Scratch;
  readonly env: Readonly<Record<string, string>>;
  readonly harness: (words: readonly string[], stdin?: string) => Promise<Ended>;
}

async function kept(files: Readonly<Record<string, string>> = {}): Promise<Kept> {
  const place = await scratch({ "work/x": "", ...files });
  const env = { XDG_STATE_HOME: place.at("state"), XDG_CONFIG_HOME: place.path };
  return {
    place,
    env,
    harness: (words, stdin) =>
      runProgram("bin/harness", ["notes", ...words], {
        home: place.path,
        cwd: place.at("work"),
        env,
        ...(stdin === undefined ? {} : { input: stdin }),
      }),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const jsonLines = (text: string): readonly Readonly<Record<string, unknown>>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

const script = (body: string): string => `#!/bin/sh\n${body}\n`;

const textOf = ({ title, body, tags }: Readonly<Record<string, unknown>>): readonly unknown[] => [
  title,
  body,
  tags,
];

describe("notes", { concurrency: 2 }, () => {
  test("a person can add, list, show, change and remove the notes that the model's tools read", async () => {
    await using one = await kept();
    const { harness, place } = one;
    const added = await harness(["add", "Build", "make", "all", "--tag", "how", "--tag", "build"]);
    assert.deepEqual([added.code, added.stdout], [0, "1\n"]);
    const piped = await harness(["add", "Decisions", "-"], "one\ntwo\n");
    assert.deepEqual([piped.code, piped.stdout], [0, "2\n"]);
    {
      using store = openStore(place.at("state/harness"));
      const found = store.notes(place.at("work")).find("", 9);
      assert.deepEqual(
        found.map(({ title, body, tags }) => [title, body, tags]),
        [
          ["Decisions", "one\ntwo", []],
          ["Build", "make all", ["how", "build"]],
        ],
      );
      store.notes("/elsewhere").write({ title: "not here", body: "", tags: [] });
    }
    const day = String.raw`\d{4}-\d\d-\d\d`;
    assert.match(
      (await harness(["list"])).stdout,
      new RegExp(`^2  ${day}  Decisions\n1  ${day}  Build  #how #build\n$`),
    );
    assert.deepEqual(jsonLines((await harness(["list", "--json", "--tag", "HOW"])).stdout).map(textOf), [
      ["Build", "make all", ["how", "build"]],
    ]);
    assert.match((await harness(["list", "--limit", "1"])).stderr, /there are more/);
    assert.match((await harness(["show", "1"])).stdout, /^Build\nnote 1, .*, #how #build\n\nmake all\n$/);
    const edited = await harness(["edit", "1", "ninja", "--no-tags", "--json"]);
    assert.deepEqual(jsonLines(edited.stdout).map(textOf), [["Build", "ninja", []]]);
    const titled = await harness(["edit", "1", "--title", "Make", "--tag", "x", "--json"]);
    assert.deepEqual(jsonLines(titled.stdout).map(textOf), [["Make", "ninja", ["x"]]]);
    const removed = await harness(["remove", "1", "2", "1"]);
    assert.deepEqual([removed.code, removed.stdout], [0, "1\n2\n"]);
    const none = await harness(["list"]);
    assert.deepEqual([none.code, none.stdout], [0, ""]);
    assert.match(none.stderr, /there are no notes here; next: harness notes add/);
    assert.match(
      (await harness(["list", "--query", "nowhere"])).stderr,
      /no note here matches; next: harness notes list/,
    );
  });

  test("an unknown note is an error, and nothing is done", async () => {
    await using one = await kept();
    const { harness, place } = one;
    await harness(["add", "here"]);
    const elsewhere = ((): number => {
      using store = openStore(place.at("state/harness"));
      return store.notes("/elsewhere").write({ title: "not here", body: "", tags: [] }).number;
    })();
    for (const [words, said] of [
      [["show", "9"], /no note of .*work has the number 9/],
      [["show", String(elsewhere)], /no note of .*work has the number/],
      [["edit", "0x1", "text"], /"0x1" is not the number of a note/],
      [["remove", "1", "\u001B[2J"], /is not the number of a note/],
      [["remove"], /no note was given/],
      [["edit", "1"], /no terminal for an editor/],
      [["edit", "1", "-"], /from the pipe is empty/],
      [["edit", "1", "--tag", "a,b"], /is not a valid tag/],
      [["add", " "], /no title/],
      [["add", "t".repeat(201)], /longer than 200/],
      [["add", "t", "b".repeat(10_001)], /longer than 10000/],
      [
        ["add", "t", ...Array.from({ length: 11 }, (_, at) => ["--tag", `t${at}`]).flat()],
        /more than 10 tags/,
      ],
    ] as const) {
      const { code, stdout, stderr } = await harness(words, "");
      assert.deepEqual([code, stdout], [2, ""], words.join(" "));
      assert.match(stderr, said);
      assert.match(stderr, /next: /);
      assert.doesNotMatch(stderr, /\u001B/);
    }
    using store = openStore(place.at("state/harness"));
    assert.deepEqual(
      store
        .notes(place.at("work"))
        .find("", 9)
        .map(({ title, body }) => [title, body]),
      [["here", ""]],
    );
  });

  test("a person and a run can write at the same time without losing or duplicating notes", async () => {
    await using one = await kept();
    const { harness, place } = one;
    await harness(["add", "mine"]);
    using run = openStore(place.at("state/harness"));
    const notes = run.notes(place.at("work"));
    const people = Array.from({ length: 4 }, (_, at) => harness(["add", `person ${at}`]));
    const [removed] = await Promise.all([
      harness(["remove", "1"]),
      ...people,
      (async () => {
        for (let at = 0; at < 40; at += 1) {
          notes.write({ title: `run ${at}`, body: "", tags: [] });
          await new Promise((resolve) => setImmediate(resolve));
        }
      })(),
    ]);
    assert.deepEqual([removed?.code, notes.get(1)], [0, undefined]);
    const found = notes.find("", 99);
    assert.equal(found.length, 44);
    assert.equal(new Set(found.map(({ number }) => number)).size, 44);
  });
});

describe("a note in the user's editor", { skip: noTerminal }, () => {
  test("is what the editor saved, and the temporary file is removed", async () => {
    await using one = await kept();
    const { harness, place, env } = one;
    await harness(["add", "Build", "make", "--tag", "how"]);
    await place.write(
      "ed",
      script(
        `cp "$2" ${place.at("seen")}; pwd > ${place.at("where")}; printf 'title: Make\\ntags: a, b\\n\\nall\\nof it\\n' > "$2"`,
      ),
      0o755,
    );
    await using screen = onTerminal(place, ["notes", "edit", "1"], {
      ...env,
      EDITOR: `${place.at("ed")} --wait`,
    });
    assert.equal(await screen.ended, 0, screen.screen());
    assert.equal(readFileSync(place.at("seen"), "utf8"), "title: Build\ntags: how\n\nmake\n");
    assert.match(readFileSync(place.at("where"), "utf8"), /state\/harness\/note-/);
    const { stdout } = await harness(["show", "1", "--json"]);
    assert.deepEqual(jsonLines(stdout).map(textOf), [["Make", "all\nof it", ["a", "b"]]]);
    assert.deepEqual(
      readdirSync(place.at("state/harness")).filter((name) => name.startsWith("note-")),
      [],
    );
  });

  test("that was changed meanwhile is not overwritten, and the typed text is kept", async () => {
    await using one = await kept();
    const { harness, place, env } = one;
    await harness(["add", "Build", "make"]);
    await place.write(
      "ed",
      script(
        `${path.join(ROOT, "bin/harness")} notes edit 1 "from the run" --cwd ${place.at("work")}; printf 'title: Build\\ntags:\\n\\nmine\\n' > "$1"`,
      ),
      0o755,
    );
    await using screen = onTerminal(place, ["notes", "edit", "1"], { ...env, EDITOR: place.at("ed") });
    assert.equal(await screen.ended, 1);
    const [, file = ""] =
      /what you wrote is in (\S+\/note-1\.md)/.exec(screen.screen().replaceAll(/\s*\r?\n\s*/g, " ")) ?? [];
    assert.match(screen.screen(), /changed or removed/);
    assert.match(readFileSync(file, "utf8"), /mine/);
    assert.match((await harness(["show", "1"])).stdout, /from the run/);
  });

  test("stays the same after a failing editor or one from the folder itself, and an unchanged one is reported", async () => {
    await using one = await kept({ "work/ed": "#!/bin/sh\necho ran > ran\n" });
    const { harness, place, env } = one;
    await harness(["add", "Build", "make"]);
    for (const [editor, code, said] of [
      ["false", 1, /false exited with 1/],
      ["true", 0, /nothing was changed/],
      [place.at("work/ed"), 2, /there is no editor/],
    ] as const) {
      await using screen = onTerminal(place, ["notes", "edit", "1"], { ...env, EDITOR: editor });
      assert.equal(await screen.ended, code, screen.screen());
      assert.match(screen.screen(), said);
    }
    assert.ok(!existsSync(place.at("work/ran")));
    assert.match((await harness(["show", "1"])).stdout, /make/);
    assert.deepEqual(
      readdirSync(place.at("state/harness")).filter((name) => name.startsWith("note-")),
      [],
    );
  });
});
