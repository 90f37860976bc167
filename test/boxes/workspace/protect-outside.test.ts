import assert from "node:assert/strict";
import { lstat } from "node:fs/promises";
import test from "node:test";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";
import { protectOutside } from "../../../src/boxes/workspace/protection.ts";

test(
  "for a linked worktree only its repository is protected, and a copy is without it",
  { skip: noGit },
  async () => {
    await using place = await scratch();
    repository(place.at("main"));
    git(place.at("main"), "worktree", "add", "-q", place.at("w"));
    const { uid, gid } = await lstat(place.at("w"));
    const workspace = { path: place.at("w"), uid, gid };
    const overlay = await protectOutside("overlay", workspace);
    assert.deepEqual([overlay.readOnly, overlay.outside], [[], [place.at("main/.git")]]);
    const { outside, warnings } = await protectOutside("copy", workspace);
    assert.deepEqual(outside, []);
    assert.match(
      warnings.join(),
      /^git does not work in the box: .* lies outside the workspace and is not copied$/,
    );
  },
);

test(
  "a workspace with its own or no repository needs nothing, and a forged pointer is not followed",
  { skip: noGit },
  async () => {
    await using place = await scratch({ "plain/file": "", "forged/.git": "gitdir: /etc\n" });
    repository(place.at("own"));
    const { uid, gid } = await lstat(place.path);
    for (const name of ["plain", "own"])
      assert.deepEqual(await protectOutside("overlay", { path: place.at(name), uid, gid }), {
        readOnly: [],
        pinned: [],
        absent: [],
        warnings: [],
        outside: [],
        above: [],
        covered: [],
      });
    const forged = await protectOutside("overlay", { path: place.at("forged"), uid, gid });
    assert.deepEqual([forged.outside, forged.warnings.length], [[], 1]);
  },
);
