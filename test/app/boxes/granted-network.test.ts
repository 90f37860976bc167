import assert from "node:assert/strict";
import test from "node:test";
import { grantsOf } from "../../../src/app/boxes/granted-network.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("the hosts of a preset are reported, also below the repository's top folder, and plain names stay as they are", async () => {
  // No box has anything of the memory that other tests keep files in, so nothing there is a repository around.
  const files = {
    "w/.git/HEAD": "ref: refs/heads/main\n",
    "w/.git/objects/x": "",
    "w/.git/refs/x": "",
    "w/.git/config": '[remote "origin"]\n\turl = https://git.example.org:8443/a/b.git\n',
    "w/part/a.js": "",
  };
  await using place = await scratch(files, "/tmp");
  for (const workspace of [place.at("w"), place.at("w/part")]) {
    const said: string[] = [];
    const host = hostFrom({ HOME: place.at("home"), PATH: "/nowhere" });
    const given = { host, settings: DEFAULTS, workspace, warn: (text: string) => void said.push(text) };
    const { grants } = await grantsOf(["a.example.org", "git"], given, new AbortController().signal);
    assert.deepEqual(
      grants.map(({ host: name, ports }) => [name, ports]),
      [
        ["a.example.org", []],
        ["git.example.org", [8443]],
      ],
    );
    assert.deepEqual(said, ["granted by git: git.example.org:8443"]);
  }
});
