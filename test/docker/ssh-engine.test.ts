import assert from "node:assert/strict";
import test from "node:test";
import { sshFailure, sshWords } from "../../src/docker/ssh-engine.ts";
import { findEngine, isEngine } from "../../src/docker/engine.ts";
import { scratch } from "../fixtures/scratch.ts";

const PLACE = { kind: "ssh", user: "me", host: "there", port: 2222, path: null } as const;

test("ssh never prompts, and no part of an address is taken for an option", () => {
  const words = sshWords({ ...PLACE, path: "/run/d.sock" });
  assert.ok(words.includes("BatchMode=yes"));
  assert.deepEqual(words.slice(words.indexOf("-l")), [
    "-l",
    "me",
    "-p",
    "2222",
    "--",
    "there",
    "docker --host unix:///run/d.sock system dial-stdio",
  ]);
});

const ENDINGS = {
  "ssh: Could not resolve hostname there: Name or service not known": /^the host is unknown/,
  "Host key verification failed.": /^the host's key is not known/,
  "me@there: Permission denied (publickey).": /^the host refused the log-in/,
  "bash: line 1: docker: command not found": /^there is no docker there/,
  "sh: 1: docker: not found": /^there is no docker there/,
  "permission denied while trying to connect to the Docker daemon socket": /^that user may not use/,
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.": /^the engine there is not running/,
  "ssh: connect to host there port 2222: Connection refused": /^cannot connect to the host/,
} as const;

for (const [said, why] of Object.entries(ENDINGS))
  test(`ssh's message is explained: ${said}`, () => {
    const { message, remedy } = sshFailure(PLACE, 255, `Welcome\n${said}\n`);
    assert.match(message, why);
    assert.ok(message.endsWith(said));
    assert.match(remedy, /ssh -p 2222 me@there (?:true|docker version)$/);
  });

test("a failing ssh program is reported with the reason and what to type", async () => {
  await using place = await scratch();
  await place.write("bin/ssh", "#!/bin/sh\necho 'docker: command not found' >&2\nexit 127\n", 0o755);
  const address = { ...PLACE, port: null };
  const env = { PATH: place.at("bin") };
  const found = await findEngine(env, 0, undefined, { address, origin: "--engine" });
  assert.ok(!isEngine(found));
  assert.match(found.reason, /^there is no docker there/);
  assert.match(found.remedy ?? "", /ssh me@there docker version$/);
});

test("a missing ssh program is reported", async () => {
  const env = { PATH: "/nonexistent" };
  const found = await findEngine(env, 0, undefined, { address: PLACE, origin: "--engine" });
  assert.ok(!isEngine(found));
  assert.match(found.reason, /no program ssh/);
});
