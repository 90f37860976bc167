import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import test from "node:test";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import {
  type AskedChat,
  eventsOf,
  finishedOf,
  harness,
  type Model,
  type Ran,
  type Said,
  startModel,
} from "./run-command.ts";
import { noTerminal as skip, onTerminal } from "./terminal.ts";
import { trustAll } from "./trusted.ts";

const skill = (name: string, body = `Do ${name}.`): string =>
  `---\nname: ${name}\ndescription: About ${name}.\n---\n${body}\n`;

/** Nothing here needs a box. */
const run = (place: Scratch, model: Model, prompt: string, ...more: readonly string[]): Promise<Ran> =>
  harness(place, ["run", "--json", "--intent", "direct", ...model.flags, ...more, prompt]);

const systemOf = (chat: AskedChat | undefined): string => chat?.messages[0]?.content ?? "";
const toolsOf = (chat: AskedChat | undefined): readonly string[] =>
  (chat?.tools ?? []).map((tool) => tool.function.name);
const lastOf = (chat: AskedChat | undefined): string => chat?.messages.at(-1)?.content ?? "";
const usersOf = (chat: AskedChat | undefined): readonly string[] =>
  (chat?.messages ?? []).filter(({ role }) => role === "user").map(({ content }) => content);

const HELLO: Said = { text: "Hello." };

test("a user's skill is listed for the model, and returned when the model calls for it", async () => {
  await using place = await household({});
  await using plain = await startModel([HELLO]);
  await run(place, plain, "hi");
  assert.ok(!toolsOf(plain.asked()[0]).includes("skill"), "nothing is offered where there is none");
  await place.write(".claude/skills/pdf/SKILL.md", skill("pdf", "Fill it by hand."));
  await using model = await startModel([{ calls: [["skill", { name: "pdf" }]] }, { text: "Done." }]);
  const ran = await run(place, model, "hi");
  assert.equal(finishedOf(ran).exit_code, 0, ran.stderr);
  const [first, second] = model.asked();
  assert.equal(toolsOf(first).at(-1), "skill");
  assert.match(systemOf(first), /\n- pdf: "About pdf\."$/);
  assert.doesNotMatch(systemOf(first), /by hand/);
  assert.ok(systemOf(first).startsWith(systemOf(plain.asked()[0])), "added after the earlier prompt");
  assert.match(lastOf(second), /\[skill pdf, of the user\]\nFill it by hand\./);
});

test("a user's rule that denies the tool applies", async () => {
  await using place = await household({});
  await place.write(".claude/skills/pdf/SKILL.md", skill("pdf", "Fill it by hand."));
  await place.write(
    ".config/harness/policy.toml",
    '[[rule]]\ndecision = "deny"\ntool = "skill"\nreason = "no skills here"\n',
  );
  await using model = await startModel([{ calls: [["skill", { name: "pdf" }]] }, { text: "Then not." }]);
  const { denials } = finishedOf(await run(place, model, "hi"));
  assert.deepEqual(
    denials.map(({ tool, reason }) => [tool, /no skills here/.test(reason)]),
    [["skill", true]],
  );
  assert.doesNotMatch(lastOf(model.asked()[1]), /by hand/);
});

test("a project's skill is hidden until it is trusted, and again after a change", async () => {
  await using place = await household({ ".claude/skills/tidy/SKILL.md": skill("tidy", "Tidy up.") });
  await using model = await startModel([{ calls: [["skill", { name: "tidy" }]] }, { text: "Done." }]);
  const ran = await run(place, model, "hi");
  const [first, second] = model.asked();
  assert.ok(!toolsOf(first).includes("skill"));
  assert.doesNotMatch(JSON.stringify([first, second?.messages.slice(-1)]), /About tidy|Tidy up/);
  const notices = eventsOf(ran).filter((event) => event.type === "notice");
  assert.deepEqual(
    notices.flatMap(({ untrusted = [] }) => untrusted.map(({ kind, file, why }) => [kind, file, why])),
    [["skills", ".claude/skills/tidy/SKILL.md", "it is not trusted"]],
  );
  await trustAll(place);
  await using trusted = await startModel([{ calls: [["skill", { name: "tidy" }]] }, { text: "Done." }]);
  await run(place, trusted, "hi");
  assert.match(systemOf(trusted.asked()[0]), /Of the repository\.[^\n]*\n- tidy: "About tidy\."/);
  assert.match(lastOf(trusted.asked()[1]), /Tidy up\./);
  await writeFile(place.at("work/.claude/skills/tidy/SKILL.md"), skill("tidy", "Tidy more."));
  await using changed = await startModel([HELLO]);
  await run(place, changed, "hi");
  assert.doesNotMatch(JSON.stringify(changed.asked()), /tidy/i);
});

test("a resumed session keeps its prompt and its tools byte for byte", async () => {
  await using place = await household({ ".agents/skills/tidy/SKILL.md": skill("tidy") });
  await place.write(".claude/skills/pdf/SKILL.md", skill("pdf"));
  await trustAll(place);
  await using model = await startModel([HELLO]);
  await run(place, model, "hi");
  await run(place, model, "hi again", "--continue");
  await place.write(".claude/skills/docx/SKILL.md", skill("docx"));
  await run(place, model, "and again", "--continue");
  const [first, second, third] = model.asked();
  assert.match(systemOf(first), /- pdf: [\s\S]*- tidy: /);
  assert.equal(JSON.stringify(second?.messages.slice(0, 2)), JSON.stringify(first?.messages.slice(0, 2)));
  assert.equal(JSON.stringify(second?.tools), JSON.stringify(first?.tools));
  assert.equal(
    JSON.stringify([third?.messages[0], third?.tools]),
    JSON.stringify([first?.messages[0], first?.tools]),
  );
});

test("a slash command in a run becomes the recorded prompt, and its calls are judged as usual", async () => {
  await using place = await household({ "a.txt": "a\n" });
  await place.write(
    ".claude/commands/steal.md",
    "---\ndescription: Steals.\nallowed-tools: Bash(*)\n---\nRead $1 and say it. !`cat $1`\n",
  );
  await using model = await startModel([
    { calls: [["bash", { command: "cat ~/.ssh/id_rsa" }]] },
    { text: "It was refused." },
  ]);
  const ran = await run(place, model, "/steal ~/.ssh/id_rsa");
  const said = "Read ~/.ssh/id_rsa and say it. !`cat ~/.ssh/id_rsa`";
  assert.ok(usersOf(model.asked()[0])[0]?.startsWith(said), usersOf(model.asked()[0]).join());
  assert.match(ran.stderr, /\/steal sends the text in .*steal\.md, yours/);
  const { session, denials, exit_code } = finishedOf(ran);
  assert.deepEqual([exit_code, denials.map(({ tool }) => tool)], [4, ["bash"]]);
  const started = eventsOf(ran).find((event) => event.type === "run.started");
  assert.ok(started?.type === "run.started" && started.task.startsWith(said));
  const { stdout } = await harness(place, ["sessions", "show", session]);
  assert.match(stdout, /Read ~\/\.ssh\/id_rsa and say it/);
});

test("the intent is guessed from a command's text, not from its name", async () => {
  await using place = await household({});
  await place.write(".claude/commands/fix.md", "Hello!\n");
  await place.write(".claude/commands/hello.md", "Fix the bug in $1.\n");
  await using model = await startModel([HELLO]);
  const none = { DOCKER_HOST: `unix://${place.at("none.sock")}` };
  const ended = async (prompt: string): Promise<unknown> => {
    const ran = await harness(place, ["run", "--json", ...model.flags, prompt], { env: none });
    return finishedOf(ran).status;
  };
  // A box is started at once only for a change, and there is no engine here.
  assert.deepEqual([await ended("/fix"), await ended("/hello a.ts")], ["done", "sandbox"]);
});

test("lists of skills and commands show their owner, and why others are ignored", async () => {
  await using place = await household({
    ".claude/skills/tidy/SKILL.md": skill("tidy"),
    ".claude/commands/ship.md": "Ship it.\n",
  });
  assert.match(
    (await harness(place, ["skills"])).stdout,
    /^untrusted  skills, .*SKILL\.md: it is not trusted; next: harness trust\nuntrusted  commands, /,
  );
  await place.write(".agents/skills/pdf/SKILL.md", skill("pdf").replace("About", "\u001B[31mAbout"));
  await place.write(".agents/skills/bad/SKILL.md", "nothing\n");
  await trustAll(place);
  const { stdout, code } = await harness(place, ["skills"]);
  assert.equal(code, 0);
  assert.match(stdout, /^skill      pdf  \(yours, .*pdf\/SKILL\.md\)  ␛\[31mAbout pdf\.$/m);
  assert.match(
    stdout,
    /^skill      tidy  \(the project's, \.claude\/skills\/tidy\/SKILL\.md\)  About tidy\.$/m,
  );
  assert.match(stdout, /^command    \/ship  \(the project's, \.claude\/commands\/ship\.md\)  Ship it\.$/m);
  assert.match(stdout, /^unusable   .*bad\/SKILL\.md: its front matter has no description$/m);
  const told = JSON.parse((await harness(place, ["skills", "--json"])).stdout) as Record<
    string,
    readonly unknown[]
  >;
  assert.deepEqual(
    Object.entries(told).map(([key, all]) => [key, all.length]),
    [
      ["skills", 2],
      ["commands", 1],
      ["problems", 1],
      ["untrusted", 0],
    ],
  );
});

test(
  "in a chat a command is listed, completed and sent, and the chat's own commands take precedence",
  { skip },
  async () => {
    await using place = await household({ ".claude/commands/ship.md": "Ship it.\n" });
    await place.write(
      ".config/harness/commands/greet.md",
      "---\ndescription: Greets.\nargument-hint: [who]\n---\nSay hello to $1.\n",
    );
    await place.write(".config/harness/commands/cost.md", "Never said.\n");
    await using model = await startModel([{ text: "Hm." }]);
    await using terminal = onTerminal(place, model.flags);
    const opened = await terminal.until(/harness> $/);
    assert.match(
      opened,
      /commands of the project are ignored: .*ship\.md \(it is not trusted\); next: harness trust/,
    );
    terminal.type("/help\r");
    const help = await terminal.until(/Ctrl-C cancels[\s\S]*harness> $/);
    assert.match(help, /\/greet \[who\] +Greets\. \(yours\)/);
    assert.match(help, /\/cost +Never said\. \(not used: the chat has a command with this name\)/);
    assert.match(help, /The project has commands that are not trusted/);
    terminal.type("/cost\r");
    await terminal.until(/Nothing has been asked yet[\s\S]*harness> $/);
    terminal.type("/ship\r");
    await terminal.until(/commands of the project are ignored: [\s\S]*there is no \/ship[\s\S]*harness> $/);
    assert.equal(model.asked().length, 0);
    terminal.type("/gree\t");
    await terminal.until(/\/greet/);
    terminal.type(" 'the whole team'\r");
    await terminal.until(/\/greet sends the text in[\s\S]*Hm\.\n[\s\S]*harness> $/);
    assert.equal(usersOf(model.asked()[0])[0], "Say hello to the whole team.");
  },
);

test(
  "a skill trusted during a chat is reported once, with how the model learns about it",
  { skip },
  async () => {
    await using place = await household({
      ".claude/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies up.\n---\nDo it.\n",
    });
    await using model = await startModel(() => ({ text: "Hm." }));
    await using terminal = onTerminal(place, model.flags);
    await terminal.until(/harness> $/);
    terminal.type("one\r");
    assert.doesNotMatch(await terminal.until(/Hm\.\n[\s\S]*harness> $/), /since this session began/);
    await trustAll(place);
    terminal.type("two\r");
    const told = await terminal.until(/Hm\.\n[\s\S]*harness> $/);
    assert.match(
      told.replaceAll(/\s+/g, " "),
      /new skill since this session began: tidy; the model is offered it in a new session .* here, type \/tidy/,
    );
    assert.ok(!JSON.stringify(model.asked().at(-1)).includes("Tidies up."));
    terminal.type("three\r");
    assert.doesNotMatch(await terminal.until(/Hm\.\n[\s\S]*harness> $/), /since this session began/);
    terminal.type("/tidy\r");
    await terminal.until(/tidy sends the text in[\s\S]*Hm\.\n[\s\S]*harness> $/);
    assert.match(usersOf(model.asked().at(-1)).at(-1) ?? "", /Do it\./);
    await using anew = await startModel([HELLO]);
    await run(place, anew, "hi");
    assert.match(systemOf(anew.asked()[0]), /Tidies up\./);
  },
);
