import assert from "node:assert/strict";
import test from "node:test";
import { messageIn, proposedMessage, statusIn } from "../../../src/app/sessions/commit-changes.ts";
import type { ModelRequest, Provider } from "../../../src/core/model-provider.ts";

test("a commit message is stripped of fences, quotes and its heading, and shortened", () => {
  assert.equal(messageIn("```text\nAdd a file\n```"), "Add a file");
  assert.equal(messageIn('"Add a file"'), "Add a file");
  assert.equal(messageIn("Commit message: Add a file\n\nIt was missing.  "), "Add a file\n\nIt was missing.");
  assert.equal(messageIn("  \n"), undefined);
  assert.equal(messageIn("line\n".repeat(100))?.split("\n").length, 20);
});

test("git status is parsed with blanks and line ends in names", () => {
  assert.deepEqual(statusIn(" M a b.txt\0?? new\nline\0A  c\0"), [
    { mark: " M", path: "a b.txt" },
    { mark: "??", path: "new\nline" },
    { mark: "A ", path: "c" },
  ]);
  assert.deepEqual(statusIn(""), []);
});

test("the model is asked once, without tools, and shown the changes", async () => {
  const asked: ModelRequest[] = [];
  const provider = {
    async *stream(request: ModelRequest) {
      asked.push(request);
      yield await Promise.resolve({
        type: "finished",
        message: { role: "assistant", text: "Say so", calls: [] },
      });
    },
  } as unknown as Provider;
  const shown = { paths: [{ mark: " M", path: "a.txt" }], diff: "+new" };
  const signal = new AbortController().signal;
  assert.equal(await proposedMessage({ provider, model: "m" }, shown, signal), "Say so");
  const [request] = asked;
  assert.deepEqual(request?.tools, []);
  assert.match(request?.messages[0]?.text ?? "", / M a\.txt\n[\s\S]*\+new/);
});
