import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { runRequest } from "../../src/agent/agent-run.ts";
import { EndRules } from "../../src/agent/earned-end.ts";
import { NO_CHANGES } from "../../src/agent/run-changes.ts";
import { anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent } from "../fakes/agent.ts";

const toolNamed = (name: string) =>
  anyTool({
    name,
    description: "",
    input: z.object({}),
    facts: () => NO_FACTS,
    beside: false,
    where: "session",
    run: () => Promise.resolve({ kind: "ok", text: "" }),
  });

async function noticesFor(prompt: string, tool: string): Promise<readonly string[]> {
  const agent = fakeAgent({
    lines: [{ text: "I cannot." }],
    tools: [toolNamed(tool)],
    over: { ends: new EndRules(null) },
  });
  const request = {
    prompt,
    strict: false,
    session: "s",
    changes: () => Promise.resolve({ changes: NO_CHANGES, handoff: [] }),
    record: () => undefined,
    workspace: "/repo",
  };
  await runRequest(agent, request, new AbortController().signal);
  return agent.events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
}

test("a request for the web says what would turn its tools on, where they are off, and nothing else does", async () => {
  const web = "search the web for the newest release of zod";
  const [said = "", ...others] = await noticesFor(web, "read_file");
  assert.match(said, /tools are off; .*harness config set web '\{"fetch": true\}'/);
  assert.deepEqual(others, []);
  assert.deepEqual(await noticesFor(web, "web_search"), []);
  assert.deepEqual(await noticesFor("hello", "read_file"), []);
});
