import assert from "node:assert/strict";
import test from "node:test";
import { blockedPaths } from "../../../src/boxes/workspace/blocked-paths.ts";

const protection = {
  readOnly: ["/w/.git", "/w/.envrc", "/w/sub/deep/.git", "/w/my dir/.vscode"],
  pinned: ["/w/sub", "/w/sub/deep", "/w/my dir"],
  outside: ["/main/.git"],
  above: [],
};

/** Messages of real programs, and what they name. */
const MESSAGES: readonly (readonly [string, ...string[]])[] = [
  ["touch: cannot touch '.git/x': Read-only file system", "/w/.git/x"],
  ["touch: cannot touch ‘.git/x’: Read-only file system", "/w/.git/x"],
  ["rm: cannot remove '.git/HEAD': Read-only file system", "/w/.git/HEAD"],
  ["rm: cannot remove '.git': Device or resource busy", "/w/.git"],
  ["mv: cannot move 'sub' to 'sub2': Device or resource busy", "/w/sub"],
  ["mv: cannot move '.git' to '.git2': Device or resource busy", "/w/.git"],
  ["chmod: changing permissions of '.git': Read-only file system", "/w/.git"],
  ["cp: cannot create regular file './.git/x': Read-only file system", "/w/.git/x"],
  ["tee: .git/hooks/pre-push: Read-only file system", "/w/.git/hooks/pre-push"],
  ["bash: line 1: .git/hooks/pre-push: Read-only file system", "/w/.git/hooks/pre-push"],
  ["bash: /w/my dir/.vscode/tasks.json: Read-only file system", "/w/my dir/.vscode/tasks.json"],
  ["sh: 1: cannot create .git/x: Read-only file system", "/w/.git/x"],
  ["/bin/sh: line 0: can't create .envrc: Read-only file system", "/w/.envrc"],
  ["fatal: Unable to create '/w/.git/index.lock': Read-only file system", "/w/.git/index.lock"],
  ["error: could not lock config file .git/config: Read-only file system", "/w/.git/config"],
  [
    "fatal: Unable to create '/main/.git/worktrees/w/index.lock': Read-only file system",
    "/main/.git/worktrees/w/index.lock",
  ],
  ["OSError: [Errno 30] Read-only file system: '.git/config'", "/w/.git/config"],
  ["OSError: [Errno 30] Read-only file system: 'a' -> '.git/b'", "/w/.git/b"],
  ["OSError: [Errno 16] Device or resource busy: '/w/sub' -> '/w/x'", "/w/sub"],
  ["Error: EROFS: read-only file system, open '/w/.git/config'", "/w/.git/config"],
  ["Error: EROFS: read-only file system, rename 'a' -> '.envrc'", "/w/.envrc"],
  ["Error: EBUSY: resource busy or locked, rename '/w/.git' -> '/w/.g'", "/w/.git"],
  ["sed: couldn't open temporary file .git/sedAbC123: Read-only file system", "/w/.git/sedAbC123"],
  ["sed: cannot rename ./sedAbC123: Device or resource busy"],
  ["Can't open .git/config: Read-only file system at -e line 1.", "/w/.git/config"],
  ["open .git/config: read-only file system", "/w/.git/config"],
  ["tar: .git/x: Cannot open: Read-only file system", "/w/.git/x"],
  ["ln: failed to create symbolic link '.git/x': Read-only file system", "/w/.git/x"],
  ["touch: cannot touch 'deep/.git/x': Read-only file system", "/w/sub/deep/.git/x"],
  ["touch: cannot touch '.git/a'$'\\n\\033''b': Read-only file system", "/w/.git/a\n\u001bb"],
  ["touch: cannot touch '.git/a'$'\\n': Read-only file system", "/w/.git/a"],
  ["touch: cannot touch '/usr/bin/x': Read-only file system"],
  ["touch: cannot touch '.git/x': Permission denied"],
  ["cp: cannot create '.git/x': No space left on device"],
  ["touch: cannot touch '.gitx': Read-only file system"],
  ["touch: cannot touch 'src/x': Read-only file system"],
  ["mv: cannot move 'src' to 'x': Device or resource busy"],
  ["Read-only file system"],
  ["error: unable to create temporary file: Read-only file system"],
  [".git/x is fine"],
];

for (const [message, ...paths] of MESSAGES)
  test(message, () => assert.deepEqual(blockedPaths(`begun\n${message}\nrest`, "/w", protection), paths));

const line = (name: string): string => `touch: cannot touch '.git/${name}': Read-only file system\n`;

test("each path is listed once, in order of the messages, and their number is bounded", () => {
  assert.deepEqual(blockedPaths(line("b") + line("a") + line("b"), "/w", protection), [
    "/w/.git/b",
    "/w/.git/a",
  ]);
  const flood = Array.from({ length: 5000 }, (_, index) => line(String(index))).join("");
  assert.equal(blockedPaths(flood, "/w", protection).length, 20);
});
