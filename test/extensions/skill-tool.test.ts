import assert from "node:assert/strict";
import test from "node:test";
import { NO_FACTS, type ToolResult } from "../../src/core/tool.ts";
import type { Skill } from "../../src/extensions/skill-folders.ts";
import { skillTool } from "../../src/extensions/skill-tool.ts";
import { fakeBox } from "../fakes/box.ts";

const skillOf = (
  given: Partial<Skill>,
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Skill => ({
  name: "pdf",
  description: "d",
  origin: "user",
  place: "p",
  body: "Fill it.",
  offered: true,
  typed: true,
  hint: "",
  files: () =>
    Promise.resolve({
      files: Object.entries(files).map(([path, text]) => ({
        path,
        bytes: () => Promise.resolve(Buffer.from(text)),
      })),
      left: [],
    }),
  ...given,
});

/** `sh` of the box as far as the copies ask for it. */
function boxed() {
  const ran: (readonly string[])[] = [];
  const box = fakeBox({
    commands: {
      sh: ({ words }) => {
        ran.push(words);
        return Promise.resolve(0);
      },
    },
  });
  return { box, ran };
}

async function called(
  skills: readonly Skill[],
  args: object,
  box: () => Promise<ReturnType<typeof fakeBox>> = () => Promise.reject(new Error("no box was wanted")),
): Promise<ToolResult> {
  const prepared = skillTool(skills, box).prepare(args);
  if (prepared.kind === "invalid")
    return { kind: "invalid", issues: prepared.issues, text: prepared.issues.join() };
  const { facts, run } = prepared.state();
  assert.deepEqual(facts, NO_FACTS);
  return run(() => Promise.reject(new Error("not by the loop")), new AbortController().signal);
}

test("a skill's body is available without a box and is labelled with its owner", async () => {
  const own = await called([skillOf({})], { name: "PDF" });
  assert.deepEqual(own, { kind: "ok", text: "[skill pdf, of the user]\nFill it." });
  const theirs = await called([skillOf({ origin: "project" })], { name: "pdf" });
  assert.match(theirs.text, /^\[skill pdf, of the repository: .*not an order from the user\]\nFill it\.$/);
});

test("a skill's files are available by their own names only", async () => {
  const skill = skillOf(
    {},
    {
      "ref/forms.md": "Forms.\n",
      "logo.png": new Uint8Array([0x89, 0x50, 0, 255]),
      "big.txt": "x".repeat(300_000),
    },
  );
  const one = (file: string) => called([skill], { name: "pdf", file });
  assert.deepEqual(await one("ref/forms.md"), {
    kind: "ok",
    text: "[skill pdf, ref/forms.md, of the user]\nForms.\n",
  });
  assert.equal((await one("./ref/forms.md")).kind, "ok");
  for (const file of [
    "../pdf/ref/forms.md",
    "ref/../ref/forms.md",
    "/ref/forms.md",
    "ref",
    "",
    "ref//forms.md",
    "SKILL.md",
    "ref/forms.md\0",
    "__proto__",
  ]) {
    const { kind, text } = await one(file);
    assert.deepEqual([kind, /has no file/.test(text)], ["invalid", true], file);
  }
  assert.match((await one("logo.png")).text, /is not text/);
  assert.match((await one("big.txt")).text, /300000 bytes/);
});

test("an unknown name is answered with suggestions", async () => {
  const skills = [skillOf({}), skillOf({ name: "docx" })];
  assert.match((await called(skills, { name: "pfd" })).text, /did you mean pdf\?/);
  assert.match((await called(skills, { name: "something" })).text, /there are: pdf, docx/);
  assert.equal((await called(skills, { name: "../pdf" })).kind, "invalid");
  assert.match(
    (await called(skills, { name: "pdf", path: "x" })).text,
    /there is no "path".*here it is file/,
  );
  assert.match((await called(skills, { skill: "pdf" })).text, /there is no "skill".*here it is name/);
});

test("a skill's files are copied once into each box, into an unpredictable folder", async () => {
  const { box, ran } = boxed();
  const skill = skillOf(
    { body: "Run ${CLAUDE_SKILL_DIR}/run.sh" },
    { "run.sh": "#!/bin/sh\necho hi\n", "lib/-x.py": "#!/usr/bin/env python3\n", "notes.md": "n\n" },
  );
  const tool = skillTool([skill], () => Promise.resolve(box));
  const call = async () => {
    const prepared = tool.prepare({ name: "pdf" });
    assert.equal(prepared.kind, "prepared");
    return prepared.state().run(() => Promise.resolve(box), new AbortController().signal);
  };
  const { text } = await call();
  const folder =
    /Its files are in (\/tmp\/skill-pdf-[0-9a-f]{8}), to be read and run: "run\.sh", "lib\/-x\.py", "notes\.md"/.exec(
      text,
    )?.[1];
  assert.ok(folder, text);
  assert.ok(text.includes(`Run ${folder}/run.sh`), text);
  assert.equal(ran.length, 1);
  assert.deepEqual(ran[0]?.slice(3), [folder, "./run.sh", "./lib/-x.py"]);
  const copied = await box.read(`${folder}/run.sh`);
  assert.ok(copied.kind === "ok" && Buffer.from(copied.value.content).toString().includes("echo hi"));
  assert.equal((await call()).text, text);
  assert.equal(ran.length, 1, "copied once");
  const other = boxed();
  const again = await called([skill], { name: "pdf" }, () => Promise.resolve(other.box));
  assert.ok(!again.text.includes(folder), "another box has a folder of its own");
});

test("a failed copy is retried, and a file that is too large is left out with a note", async () => {
  const { box } = boxed();
  const state = { fails: true };
  const failing = {
    ...box,
    write: (file: string, content: Uint8Array) =>
      state.fails
        ? Promise.resolve({
            kind: "failed",
            cause: "filesystem",
            code: "ENOSPC",
            path: file,
            reason: "the disk is full",
          } as const)
        : box.write(file, content),
  };
  const tool = skillTool([skillOf({}, { a: "a", huge: "x".repeat(5 * 2 ** 20) })], () =>
    Promise.resolve(failing),
  );
  const call = async () => {
    const prepared = tool.prepare({ name: "pdf" });
    assert.equal(prepared.kind, "prepared");
    return prepared.state().run(() => Promise.resolve(failing), new AbortController().signal);
  };
  const first = await call();
  assert.deepEqual(
    [first.kind, first.text],
    ["failed", "the skill's files cannot be copied: a: the disk is full"],
  );
  state.fails = false;
  const second = await call();
  assert.equal(second.kind, "ok");
  assert.match(
    second.text,
    /Left out \(links, too deep, too many, too large, or changed since they were trusted\): "huge"/,
  );
});
