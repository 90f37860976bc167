import assert from "node:assert/strict";
import test from "node:test";
import { engineText, isLoopback, readEngineAddress } from "../../src/core/addresses.ts";

const READ = {
  "unix:///var/run/docker.sock": { kind: "unix", path: "/var/run/docker.sock" },
  "unix:///path/with blank.sock": { kind: "unix", path: "/path/with blank.sock" },
  "tcp://engine.example": { kind: "tcp", host: "engine.example", port: null, plain: false },
  "tcp://10.1.2.3:2376": { kind: "tcp", host: "10.1.2.3", port: 2376, plain: false },
  "tcp://[::1]:2376": { kind: "tcp", host: "::1", port: 2376, plain: false },
  "http://127.0.0.1:2375": { kind: "tcp", host: "127.0.0.1", port: 2375, plain: true },
  "https://engine.example:443": { kind: "tls", host: "engine.example", port: 443 },
  "ssh://engine.example": { kind: "ssh", user: null, host: "engine.example", port: null, path: null },
  "ssh://me@engine.example:2222": { kind: "ssh", user: "me", host: "engine.example", port: 2222, path: null },
  "ssh://me@alias/run/user/1000/docker.sock": {
    kind: "ssh",
    user: "me",
    host: "alias",
    port: null,
    path: "/run/user/1000/docker.sock",
  },
  "ssh://me@corp.example@gate": {
    kind: "ssh",
    user: "me@corp.example",
    host: "gate",
    port: null,
    path: null,
  },
  lab: { kind: "context", name: "lab" },
  "desktop-linux": { kind: "context", name: "desktop-linux" },
  "kubernetes://": { kind: "kubernetes", context: null, namespace: null },
  "kubernetes:": { kind: "kubernetes", context: null, namespace: null },
  "kubernetes:/boxes": { kind: "kubernetes", context: null, namespace: "boxes" },
  "kubernetes://lab": { kind: "kubernetes", context: "lab", namespace: null },
  "kubernetes:///boxes": { kind: "kubernetes", context: null, namespace: "boxes" },
  "kubernetes://arn:aws:eks:eu:1:cluster%2Flab/boxes": {
    kind: "kubernetes",
    context: "arn:aws:eks:eu:1:cluster/lab",
    namespace: "boxes",
  },
};

for (const [text, address] of Object.entries(READ))
  test(`${text} is read`, () => {
    const read = readEngineAddress(text);
    assert.deepEqual(read, { kind: "address", address });
    assert.ok(read.kind === "address");
    assert.deepEqual(readEngineAddress(engineText(read.address)), read, "and is written as it is read");
  });

test("a scheme may be written in capitals", () => {
  const read = readEngineAddress("SSH://me@there");
  assert.equal(read.kind === "address" && engineText(read.address), "ssh://me@there");
});

const WRONG = {
  "": /empty/,
  "unix://": /absolute path/,
  "unix://relative.sock": /absolute path/,
  "tcp://": /host:port/,
  "tcp://host:0": /host:port/,
  "tcp://host:65536": /host:port/,
  "tcp://host:2376/path": /host:port/,
  "tcp://host:2376?x": /host:port/,
  "tcp://me:secret@host:2376": /no user name or password/,
  "tcp://-host:1": /host:port/,
  "ssh://": /user@host/,
  "ssh://-oProxyCommand=touch": /user@host/,
  "ssh://-lroot@host": /user@host/,
  "ssh://me@-oProxyCommand=x": /user@host/,
  "ssh://me:secret@host": /not have a password/,
  "ssh://me@host name": /user@host/,
  "ssh://me@host/run/a b.sock": /path of a socket/,
  "ssh://me@host/$(touch x)": /path of a socket/,
  "ssh://me@host\n-x": /user@host/,
  "kubernetes://a/b/c": /%2F/,
  "kubernetes://a/Boxes": /not a valid namespace name/,
  "kubernetes://%zz": /cannot be read/,
  "ftp://host": /not supported/,
  "/var/run/docker.sock": /neither an address nor .* docker context/,
  "127.0.0.1:2376": /neither an address nor .* docker context/,
  "-lab": /neither an address nor .* docker context/,
  "../lab": /neither an address nor .* docker context/,
} as const;

for (const [text, why] of Object.entries(WRONG))
  test(`${JSON.stringify(text)} is refused with the reason`, () => {
    const read = readEngineAddress(text);
    assert.match(read.kind === "wrong" ? read.message : "it was read", why);
  });

test("only addresses of this machine are loopback", () => {
  for (const near of ["localhost", "127.0.0.1", "127.8.9.1", "::1"]) assert.ok(isLoopback(near), near);
  for (const far of ["127.0.0.1.example", "10.0.0.1", "localhost.example", "0.0.0.0", "::2", "1127.0.0.1"])
    assert.ok(!isLoopback(far), far);
});
