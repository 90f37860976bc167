import assert from "node:assert/strict";
import test from "node:test";
import { refusedBy } from "../../src/agent/approvers.ts";
import { hostFrom } from "../../src/app/host.ts";
import { sessionState } from "../../src/app/run/session-state.ts";
import { lazyJudge } from "../../src/app/project/policy-context.ts";
import type { Mode } from "../../src/core/decision.ts";
import { memoryStore } from "../fakes/store.ts";
import { called, prepared } from "../fixtures/call.ts";
import { skip } from "../fixtures/engine.ts";
import { NO_EXTENSIONS } from "../../src/core/tool.ts";
import { realBox } from "../fixtures/real-box.ts";

const NOTE = "[http_proxy is not kept for later calls: set it in the command that needs it]";
const LOOK = "echo $FOO ${PATH%%:*} $http_proxy";

const none = (): never => assert.fail();

/** What a script that sets an environment up says of itself, what a later call sees, and how that one is judged. */
async function after(mode: Mode): Promise<readonly unknown[]> {
  await using real = await realBox({
    "env.sh": "export http_proxy=http://proxy.example:1 PATH=/x:$PATH FOO=1\n",
  });
  const { workspace } = real.box;
  const store = memoryStore();
  const session = store.create({ workspace, mode, provider: "ollama", model: "m", title: "t" });
  const index = { search: () => Promise.resolve({ hits: [], caveat: "" }) };
  const settings = { timeout: 10_000 };
  const parts = { session, store, workspace, settings, prompt: "", index };
  const lasting = sessionState({ ...parts, extensions: NO_EXTENSIONS });
  const judge = lazyJudge(hostFrom(process.env), { mode, allow_domains: [] }, workspace);
  const subagents = { run: none, begin: none, look: none };
  lasting.beginRequest({ isWeak: false, refused: refusedBy(judge, mode), planned: none, subagents });
  const bash = lasting.tools.find(({ name }) => name === "bash") ?? assert.fail();
  const first = await called(bash, { command: "source ./env.sh" }, real.box);
  const later = await called(bash, { command: LOOK }, real.box);
  const { decision, contained } = (await judge()).judge(prepared(bash, { command: "ls" }).state().facts);
  return [first.text, later.text, decision === "allow" || contained];
}

test(
  "a variable that would get every later command refused is dropped, all others last",
  { skip },
  async () => {
    assert.deepEqual(await after("workspace-write"), [`(no output)\n${NOTE}`, "1 /x", true]);
  },
);

test("in danger-full-access every variable lasts", { skip }, async () => {
  assert.deepEqual(await after("danger-full-access"), ["(no output)", "1 /x http://proxy.example:1", true]);
});
