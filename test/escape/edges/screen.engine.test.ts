import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { household } from "../../e2e/box-command.ts";
import { FAR, park, sessionOf } from "../../e2e/parked.ts";
import { bash, eventsOf, harness, startModel } from "../../e2e/run-command.ts";
import { noTerminal, onTerminal as onPty } from "../../e2e/terminal.ts";
import { COMPILED } from "../../fixtures/cli.ts";
import { skip as noEngine, ROOT } from "../../fixtures/engine.ts";
import { activeIn, ALL_HOSTILE, HOSTILE } from "../../fixtures/hostile.ts";
import type { Scratch } from "../../fixtures/scratch.ts";

const skip = noTerminal === false ? noEngine : noTerminal;

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

interface Seen {
  readonly bytes: Buffer;
  readonly text: string;
}

/** What a terminal gets, both streams of it. Without colours every escape is somebody else's. */
async function onTerminal(place: Scratch, words: readonly string[], colours = false): Promise<Seen> {
  const file = place.at("line.sh");
  const program = [path.join(ROOT, "bin/harness"), ...words].map(quoted).join(" ");
  await writeFile(file, `stty cols 200 rows 50; ${program}\n`);
  const plain = { NO_COLOR: "1", TERM: "dumb" };
  const env = {
    PATH: process.env["PATH"],
    HOME: place.path,
    ...COMPILED,
    ...(colours ? { TERM: "xterm-256color" } : plain),
  };
  const child = spawn("script", ["-qec", `sh ${file}`, "/dev/null"], {
    cwd: place.at("work"),
    env,
    timeout: 60_000,
    killSignal: "SIGKILL",
  });
  const seen: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => seen.push(chunk));
  child.stdin.on("error", () => undefined);
  await new Promise((resolve) => child.once("close", resolve));
  child.stdin.destroy();
  const bytes = Buffer.concat(seen);
  return { bytes, text: bytes.toString().replaceAll("\r\n", "\n") };
}

function assertInert({ bytes, text }: Seen, colours = false): void {
  assert.equal(activeIn(bytes, colours), undefined, text);
}

test(
  "the answer of a run reaches a terminal without control characters, for every hostile text",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([{ text: ALL_HOSTILE }]);
    for (const colours of [false, true]) {
      const seen = await onTerminal(place, ["run", ...model.flags, "--intent", "direct", "say it"], colours);
      assertInert(seen, colours);
      for (const word of ["]52;c;cm0gLXJm", "sudo password:", "fdp", "<U+202E>", "<U+E0041>", "<U+FE00>"])
        assert.ok(seen.text.includes(word), `${word} in ${seen.text}`);
      assert.match(seen.text, /w0 ❤ 👩💻 1\u20E3 ok w1/);
    }
  },
);

test(
  "a pipe gets the answer without control characters, and --json the exact text with them escaped",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([{ text: ALL_HOSTILE }]);
    const words = [...model.flags, "--intent", "direct", "say it"];
    const piped = await harness(place, ["run", ...words]);
    const emoji = /(?<=[❤1])\uFE0F|(?<=👩)\u200D(?=💻)/gu;
    assert.equal(activeIn(Buffer.from(piped.stdout.replaceAll(emoji, ""))), undefined, piped.stdout);
    assert.ok(piped.stdout.includes("w0 ❤\uFE0F 👩\u200D💻 1\uFE0F\u20E3 ok w1"));
    const json = await harness(place, ["run", "--json", ...words]);
    assert.equal(activeIn(Buffer.from(json.stdout)), undefined);
    const said = eventsOf(json).flatMap((event) => (event.type === "text" ? [event.text] : []));
    assert.equal(said.join("").trimEnd(), ALL_HOSTILE);
    const plain = await harness(place, ["run", ...model.flags, "--intent", "direct", "--quiet", "ä ü"]);
    assert.equal(plain.code, 0);
  },
);

test(
  "approve shows its question, its answer and the session without control characters",
  { skip },
  async () => {
    await using place = await household();
    const far = `${FAR} # ${HOSTILE["title"] ?? ""}${HOSTILE["directions"] ?? ""}`;
    await using model = await startModel([
      { text: HOSTILE["eight"] ?? "", ...bash(far) },
      { text: ALL_HOSTILE },
    ]);
    const session = sessionOf(await park(place, model));
    assertInert(await onTerminal(place, ["sessions", "show", session]));
    assertInert(await onTerminal(place, ["approve", session, "--deny"]));
    for (const words of [["show", session], ["list"], ["export", session]])
      assertInert(await onTerminal(place, ["sessions", ...words]));
    for (const words of [
      ["report", session],
      ["report", session, "--html", "-"],
      ["report", session, "--json"],
    ])
      assertInert(await onTerminal(place, words));
  },
);

/** Names that git, a file system and the shell take. */
const NAMES = Object.values(HOSTILE)
  .map((text) => text.replaceAll("\u0000", "").replaceAll("/", "_"))
  .filter((text) => text.isWellFormed());

test(
  "names and contents of a repository are shown without control characters everywhere",
  { skip },
  async () => {
    const made =
      'for f in *; do echo more >> "$f"; cp "$f" "new$f"; done; printf x > $(printf "raw\\233\\235")\n';
    const content = ALL_HOSTILE.replaceAll("\u0000", "");
    await using place = await household({
      ...Object.fromEntries(NAMES.map((name) => [name, content])),
      "make.sh": made,
    });
    await using model = await startModel([
      bash("bash make.sh"),
      {
        calls: [
          ["read_file", { path: NAMES[0] }],
          ["grep", { pattern: "w1" }],
          ["no\u001B]2;x\u0007tool\u202E", {}],
        ],
      },
      { text: "made" },
    ]);
    const first = await onTerminal(place, ["run", ...model.flags, "--intent", "change", "make them"]);
    assertInert(first);
    assertInert(
      await onTerminal(place, ["run", "--json", ...model.flags, "--intent", "change", "make them"]),
    );
    assert.ok((await readdir(place.at("work"))).length > NAMES.length * 2, first.text);
    await mkdir(place.at("work/.git"), { recursive: true });
    await writeFile(place.at("work/.git/HEAD"), `ref: refs/heads/${HOSTILE["directions"] ?? ""}\n`);
    const asked = [
      ["diff"],
      ["diff", "--stat"],
      ["diff", "--steps"],
      ["diff", "--json"],
      ["undo", "--dry-run"],
      ["undo"],
      ["report"],
      ["sessions", "list", "--all"],
      ["replay", "--help"],
      ["sandbox", "exec", "--", "sh", "-c", "ls -1; cat ./*; git branch -a"],
      ["sandbox", "exec", "--json", "--", "sh", "-c", "ls -1; cat ./*"],
      ["policy", "check", "--explain", "--", `cat ${NAMES.join(" ")}`],
      ["policy", "path", NAMES[3] ?? "", "--op", "write"],
      ["config", "get", HOSTILE["title"]?.replaceAll("\u0000", "") ?? ""],
      ["no\u001B]2;x\u0007such\u202E"],
      ["search", NAMES[1] ?? ""],
      ["index", "--status"],
      ["sandbox", "ls"],
    ];
    for (const words of asked) assertInert(await onTerminal(place, words));
  },
);

test(
  "a chat shows streamed replies, questions, pastes and earlier messages without control characters",
  { skip },
  async () => {
    await using place = await household();
    const far = `${FAR} # ${UNSEEN}`;
    const message = { role: "assistant", content: "" };
    await using model = await startModel((chat) => {
      const asked = chat.messages.at(-1)?.content ?? "";
      if (asked.includes("run it")) return { calls: [["bash", { command: far }]] };
      // Parted within characters, line ends and sequences.
      const units = `${ALL_HOSTILE} the end`
        .split("")
        .map((unit) => ({ message: { ...message, content: unit } }));
      return { lines: [...units, { message, done: true, done_reason: "stop" }] };
    });
    const AGAIN = /\n\nharness> $/;
    const seen: Uint8Array[] = [];
    {
      await using terminal = onPty(place, model.flags);
      await terminal.until(/harness> $/);
      terminal.type("hello\r");
      const said = await terminal.until(AGAIN);
      assert.match(said, /w0 ❤ 👩💻 1\u20E3 ok w1 the end/);
      assert.ok(
        said.includes("␛]52;c;cm0gLXJm␇") && said.includes("<U+202E>") && said.includes("<U+E0041>"),
        said,
      );
      terminal.type("run it\r");
      await terminal.until(/run it\? \[y\/N\] $/);
      terminal.type("\r");
      await terminal.until(AGAIN);
      terminal.type(`\u001B[200~${PASTED}\u001B[201~`);
      await terminal.until(/w1/);
      terminal.type("\r");
      await terminal.until(AGAIN);
      terminal.type("/mode no\u200Bsuch\r");
      await terminal.until(/There is no mode no<U\+200B>such/);
      terminal.type("\u0004");
      await terminal.ended;
      seen.push(terminal.bytes());
    }
    await using again = onPty(place, ["resume", ...model.flags]);
    await again.until(/harness> $/);
    again.type("\u001B[A\u001B[A");
    again.type("\u0003\u0003\u0004");
    await again.ended;
    for (const bytes of [...seen, again.bytes()])
      // A line that is edited begins with a bare carriage return.
      assert.equal(
        activeIn(
          Buffer.from(
            Buffer.from(bytes)
              .toString()
              .replaceAll(/\r(?!\n)/g, ""),
          ),
          true,
        ),
        undefined,
      );
  },
);

const UNSEEN = ["directions", "fillers", "unseen", "tags", "selectors"].map((name) => HOSTILE[name]).join("");
const PASTED = (HOSTILE["title"] ?? "") + (HOSTILE["directions"] ?? "");

test(
  "output of a program that splits its sequences, characters and emoji is shown without control characters",
  { skip },
  async () => {
    await using place = await household();
    const units = [...Buffer.from(ALL_HOSTILE)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`);
    const command = units
      .map((unit, at) => `printf '${unit}'${at % 40 === 0 ? "; sleep 0.02" : ""}`)
      .join("\n");
    const seen = await onTerminal(place, ["sandbox", "exec", "--", "bash", "-c", command]);
    assertInert(seen);
    assert.match(seen.text, /w0 ❤ 👩💻 1\u20E3 ok w1/);
  },
);

test("errors from a model server are shown without control characters", { skip }, async () => {
  await using place = await household();
  const error = { error: ALL_HOSTILE };
  for (const status of [400, 404, 500]) {
    await using model = await startModel(() => ({ status, lines: [error], drops: false }));
    const words = [...model.flags, "--intent", "direct", "--max-time", "10s", "say it"];
    assertInert(await onTerminal(place, ["run", ...words]));
    assertInert(await onTerminal(place, ["run", "--json", ...words]));
  }
});
