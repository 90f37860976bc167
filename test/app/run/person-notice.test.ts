import assert from "node:assert/strict";
import { on } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { watch } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { describe, type TestContext } from "node:test";
import {
  ChatNotice,
  desktopNotice,
  isWatched,
  noticeFor,
  noticeText,
  withNotice,
} from "../../../src/app/run/run-observers.ts";
import { fakeClock, fakeTerminal } from "../../fakes/terminal.ts";
import { EVERY_EVENT, stamped } from "../../fixtures/events.ts";

const BOTH = { bell: true, desktop: true };
const NEITHER = { bell: false, desktop: false };

test("a notice is given for the end of a long run and for any parked run, but not after an interruption", () => {
  assert.deepEqual(noticeFor({ status: "done", ms: 30_001 }, "both"), BOTH);
  assert.deepEqual(noticeFor({ status: "done", ms: 30_000 }, "both"), NEITHER);
  assert.deepEqual(noticeFor({ status: "parked", ms: 1 }, "both"), BOTH);
  assert.deepEqual(noticeFor({ status: "interrupted", ms: 90_000 }, "both"), NEITHER);
  assert.deepEqual(noticeFor({ status: "failed", ms: 90_000 }, "off"), NEITHER);
  assert.deepEqual(noticeFor({ status: "failed", ms: 90_000 }, "bell"), { bell: true, desktop: false });
  assert.deepEqual(noticeFor({ status: "failed", ms: 90_000 }, "desktop"), { bell: false, desktop: true });
});

test("a pipe, CI, --json and --quiet count as unwatched", () => {
  const flags = { json: false, quiet: false };
  const screen = { isTTY: true };
  assert.equal(isWatched(flags, screen, undefined), true);
  assert.equal(isWatched(flags, { isTTY: false }, undefined), false);
  assert.equal(isWatched(flags, screen, "true"), false);
  assert.equal(isWatched({ ...flags, json: true }, screen, undefined), false);
  assert.equal(isWatched({ ...flags, quiet: true }, screen, undefined), false);
});

test("a title is shortened to one line without markup or control characters", () => {
  const text = noticeText("done", `<b>a</b>\n&lt;\u001B]52;c;x\u0007${"y".repeat(200)}`);
  assert.doesNotMatch(text, /[<>&\n\u001B\u0007]/);
  assert.ok(Array.from(text).length <= "ended: done ()".length + 80);
  assert.equal(noticeText("parked", "mend it"), "waits for your approval (mend it)");
});

for (const [ms, bell] of [
  [29_000, ""],
  [31_000, "\u0007"],
] as const)
  test(`a run of ${ms} ms ${bell === "" ? "ends in silence" : "rings and is told of"}`, () => {
    const { clock, pass } = fakeClock();
    const { stream, written } = fakeTerminal(80);
    const told: string[] = [];
    const shown = { take: () => undefined, end: () => undefined };
    const renderer = withNotice(shown, {
      notify: "both",
      title: "mend it",
      screen: stream,
      clock,
      desktop: (text) => told.push(text),
    });
    pass(ms);
    for (const event of stamped([{ ...EVERY_EVENT["run.finished"], status: "done" }])) renderer.take(event);
    assert.equal(written(), bell);
    assert.deepEqual(told, bell === "" ? [] : ["ended: done (mend it)"]);
  });

async function programIn(folder: string, seen: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, "notify-send");
  await writeFile(
    file,
    `#!/bin/sh\nprintf '%s\\n' "$@" > '${seen}.part'\n/bin/mv '${seen}.part' '${seen}'\n`,
  );
  await chmod(file, 0o755);
}

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "notice-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("notify-send gets the text as one argument, and one inside the workspace is not run", async (t) => {
  const folder = await folderFor(t);
  const seen = path.join(folder, "seen");
  const work = path.join(folder, "work");
  await mkdir(seen);
  await programIn(path.join(folder, "bin"), path.join(seen, "own"));
  await programIn(path.join(work, "bin"), path.join(seen, "theirs"));
  const watcher = watch(seen);
  const changes = on(watcher, "change");
  const PATH = `${work}/bin:${folder}/bin`;
  await desktopNotice("done; $(touch x)", { PATH }, work);
  let got: string | undefined;
  while (got === undefined) {
    await changes.next();
    got = await readFile(path.join(seen, "own"), "utf8").catch(() => undefined);
  }
  watcher.close();
  assert.equal(got, "--app-name=harness\n--\nharness\ndone; $(touch x)\n");
  await assert.rejects(readFile(path.join(seen, "theirs")));
});

test("a missing or broken notification program is ignored", async (t) => {
  const folder = await folderFor(t);
  await desktopNotice("done", { PATH: folder }, "/nowhere");
  await writeFile(path.join(folder, "notify-send"), "#!/no/such/program\n", { mode: 0o755 });
  await desktopNotice("done", { PATH: folder }, "/nowhere");
});

function chat(notify: "both" | "off" = "both") {
  const { clock, pass } = fakeClock();
  const told: string[] = [];
  const notice = new ChatNotice({
    clock,
    notify: () => notify,
    title: () => "mend it",
    ring: () => void told.push("bell"),
    desktop: (text) => void told.push(text),
  });
  const take = (type: string, more: object = {}): void =>
    notice.take({ type, ...more } as unknown as Parameters<typeof notice.take>[0]);
  return { notice, take, pass, told };
}

describe("in a chat", () => {
  test("a long request is announced at its end, a short one or one with notify off is not", () => {
    for (const [ms, notify, wanted] of [
      [31_000, "both", ["bell", "ended: done (mend it)"]],
      [29_000, "both", []],
      [31_000, "off", []],
    ] as const) {
      const { take, pass, told } = chat(notify);
      pass(90_000);
      take("run.started");
      take("run.started", { agent: "a1" });
      pass(ms);
      take("run.finished", { status: "done", agent: "a1" });
      take("run.finished", { status: "done" });
      assert.deepEqual(told, wanted);
    }
  });

  test("a question long after the person's last input is announced, and one right after an answer is not", async () => {
    const { notice, take, pass, told } = chat();
    take("run.started");
    pass(31_000);
    assert.equal(await notice.askWithNotice(() => Promise.resolve((pass(60_000), "yes"))), "yes");
    assert.deepEqual(told, ["bell", "waits for your approval (mend it)"]);
    await notice.askWithNotice(() => Promise.resolve("no"));
    pass(29_000);
    take("run.finished", { status: "done" });
    assert.equal(told.length, 2, "the answer was the person's last word");
  });

  test("nothing is announced when nobody watches", async () => {
    const notice = new ChatNotice(undefined);
    assert.equal(await notice.askWithNotice(() => Promise.resolve("yes")), "yes");
  });
});
