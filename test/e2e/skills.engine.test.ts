import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { type AskedChat, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { trustAll } from "./trusted.ts";

const resultOf = (chat: AskedChat | undefined): string => chat?.messages.at(-1)?.content ?? "";
const FOLDER = /\/tmp\/skill-tidy-[0-9a-f]{8}/;

test(
  "a skill's scripts run in the box, are judged like any command, and cannot be changed by it",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "a\n" });
    await place.write(
      ".claude/skills/tidy/SKILL.md",
      "---\nname: tidy\ndescription: Tidies.\n---\nRun ${CLAUDE_SKILL_DIR}/bin/tidy.sh\n",
    );
    await place.write(".claude/skills/tidy/bin/tidy.sh", "#!/bin/sh\necho tidied by $(basename $0)\n");
    await place.write(".claude/skills/tidy/notes.md", "Notes.\n");
    await place.write(".claude/commands/clean.md", "Tidy $1, please.\n");
    const folder = (chat: AskedChat): string =>
      chat.messages.map(({ content }) => FOLDER.exec(content)?.[0] ?? "").find((each) => each !== "") ??
      "none";
    await using model = await startModel((chat, nth) => {
      if (nth === 0) return { calls: [["skill", { name: "tidy" }]] };
      if (nth === 1) return { calls: [["bash", { command: `${folder(chat)}/bin/tidy.sh` }]] };
      if (nth === 2) return { calls: [["read_file", { path: `${folder(chat)}/notes.md` }]] };
      if (nth === 3)
        return { calls: [["bash", { command: `echo x > ${folder(chat)}/notes.md; ls ~/.claude` }]] };
      if (nth === 4) return { calls: [["skill", { name: "tidy" }]] };
      return { text: "Tidied." };
    });
    const ran = await harness(place, ["run", "--json", ...model.flags, "/clean up"]);
    const asked = model.asked();
    const result = resultOf(asked[1]);
    assert.match(
      result,
      /Run \/tmp\/skill-tidy-[0-9a-f]{8}\/bin\/tidy\.sh\n[\s\S]*"bin\/tidy\.sh", "notes\.md"/,
      ran.stderr,
    );
    assert.match(resultOf(asked[2]), /tidied by tidy\.sh/);
    assert.match(resultOf(asked[3]), /Notes\./);
    assert.match(resultOf(asked[4]), /Permission denied|cannot create/);
    assert.doesNotMatch(resultOf(asked[4]), /skills/, "the user's own folder is not in the box");
    assert.equal(FOLDER.exec(resultOf(asked[5]))?.[0], FOLDER.exec(result)?.[0], "copied once");
    const { session, changes } = finishedOf(ran);
    const audit = await place.read(`.local/state/harness/audit/${session}.jsonl`);
    const lines = audit
      .trim()
      .split("\n")
      .map(
        (line) =>
          JSON.parse(line) as { readonly kind: string; readonly tool?: string; readonly task?: string },
      );
    assert.equal(lines.find(({ kind }) => kind === "run.started")?.task, "Tidy up, please.");
    assert.deepEqual(
      lines.flatMap(({ kind, tool }) => (kind === "decision" ? [tool] : [])),
      ["skill", "bash", "read_file", "bash", "skill"],
    );
    assert.deepEqual(
      eventsOf(ran).filter(({ type }) => type === "call.decided").length,
      5,
      "each of them was judged",
    );
    assert.deepEqual(changes, { added: [], modified: [], deleted: [], ignored: 0 });
  },
);

test("a skill can be used in read-only mode", { skip }, async () => {
  await using place = await household({
    ".agents/skills/look/SKILL.md": "---\ndescription: Looks.\n---\nLook.\n",
    ".agents/skills/look/look.sh": "#!/bin/sh\necho looked\n",
  });
  await trustAll(place);
  await using model = await startModel([
    { calls: [["skill", { name: "look" }]] },
    { calls: [["bash", { command: "cat /tmp/skill-look-*/look.sh" }]] },
    { text: "Looked." },
  ]);
  const ran = await harness(place, [
    "run",
    "--json",
    "--mode",
    "read-only",
    ...model.flags,
    "what does this project do?",
  ]);
  assert.match(
    resultOf(model.asked()[1]),
    /of the repository: [\s\S]*Look\.[\s\S]*\/tmp\/skill-look-/,
    ran.stderr,
  );
  assert.match(resultOf(model.asked()[2]), /echo looked/);
});
