import assert from "node:assert/strict";
import test from "node:test";
import { mayEscalate, toolsOf } from "../../../src/agent/intent/ask-intent.ts";

const named = (names: string): readonly { readonly name: string }[] =>
  names.split(" ").map((name) => ({ name }));
const all = named(
  "read_file list_dir glob grep edit_file write_file apply_patch bash show_full semantic_search note notes task",
);
const offered = (intent: "direct" | "repo" | "web" | "change"): string =>
  toolsOf(intent, all)
    .map(({ name }) => name)
    .join(" ");

test("a greeting gets no tools, a question those that read, a task all of them in their order", () => {
  assert.equal(offered("direct"), "");
  assert.equal(offered("repo"), "read_file list_dir glob grep show_full semantic_search notes");
  assert.equal(offered("web"), offered("repo"));
  assert.deepEqual(toolsOf("change", all), all);
});

test("a tool that was added from outside is not taken for a reading one", () => {
  assert.deepEqual(toolsOf("repo", named("grep mcp_read")), named("grep"));
});

test("a call of a tool that exists and was not offered escalates, and nothing does from change", () => {
  assert.equal(mayEscalate("direct", "grep", all), true);
  assert.equal(mayEscalate("repo", "bash", all), true);
  assert.equal(mayEscalate("repo", "grep", all), false);
  assert.equal(mayEscalate("repo", "no_such_tool", all), false);
  assert.equal(mayEscalate("change", "bash", all), false);
});
