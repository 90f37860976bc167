import assert from "node:assert/strict";
import test from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { engineFailure } from "../../../src/docker/engine.ts";
import { workspaceUnseen } from "../../../src/docker/box/workspace-place.ts";

/** As engines have said it; all but the last two are a workspace that is out of their sight. */
const SAID = [
  ["bind", 'invalid mount config for type "bind": bind source path does not exist: /w', true],
  ["bind", "Mounts denied: The path /w is not shared from the host", true],
  ["bind", "statfs /w: no such file or directory", true],
  [
    "overlay",
    "failed to mount local volume: mount overlay:/v/_data, data: lowerdir=/l: no such file or directory",
    true,
  ],
  ["overlay", "error while mounting volume '/v/_data': invalid argument", true],
  ["bind", "OCI runtime create failed: no space left on device", false],
  ["copy", "statfs /w: no such file or directory", false],
] as const;

for (const [isolation, text, expected] of SAID)
  test(`${isolation}: ${text}`, () => {
    const found = workspaceUnseen(isolation, "/w", engineFailure("making the box", new Error(text)));
    assert.equal(found instanceof HarnessError, expected);
    assert.match(found?.remedy ?? "--isolation copy", /--isolation copy/);
  });
