import assert from "node:assert/strict";
import test from "node:test";
import { isVariableThatLoads, variablesIn } from "../../src/vet/scripts.ts";

const read = (text: string): readonly string[] =>
  [...variablesIn(text)]
    .filter(({ name, value }) => isVariableThatLoads(name, value))
    .map(({ name, line }) => `${name} ${line}`);

test("a variable that makes a program load code from the tree is reported with its line", () => {
  const text = [
    "# settings",
    'export NODE_OPTIONS="--max-old-space-size=64 --require ./x.js"',
    "NODE_OPTIONS=--import=data:text/javascript,x",
    "LD_PRELOAD=./a.so",
    "BASH_ENV='${PWD}/e'",
    "PYTHONSTARTUP=tools/start.py",
    "JAVA_TOOL_OPTIONS=-Xmx1g -javaagent:a.jar",
    "GOFLAGS=-toolexec=./x",
    "GIT_SSH_COMMAND=sh -c id",
    "RUBYOPT=-r./x",
    "PERL5OPT=-Mx",
  ].join("\n");
  assert.deepEqual(
    read(text).map((each) => Number(each.split(" ")[1])),
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
});

test("a variable that only tunes a program, or loads system files, is not reported", () => {
  const text = [
    "NODE_OPTIONS=--max-old-space-size=4096 --enable-source-maps -r dotenv/config",
    "LD_PRELOAD=/usr/lib/libjemalloc.so.2",
    "ENV=production",
    "GIT_EDITOR=vim",
    "GIT_PAGER=/usr/bin/less",
    "JAVA_TOOL_OPTIONS=-Xmx1g",
    "GOFLAGS=-mod=readonly -trimpath",
    "PATH=./node_modules/.bin:$PATH",
  ].join("\n");
  assert.deepEqual(read(text), []);
});
