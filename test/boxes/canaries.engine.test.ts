import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { canariesIn, plantCanaries } from "../../src/boxes/canaries.ts";
import type { Canary, Observed } from "../../src/core/behaviour.ts";
import type { ExecResult } from "../../src/core/ports.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";

type Real = Awaited<ReturnType<typeof realBox>>;
const shared = { real: undefined as Real | undefined, canaries: [] as readonly Canary[] };

const STATIC = `#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
  char text[4096];
  ssize_t n = read(open(words[1], O_RDONLY), text, sizeof text);
  return n > 0 && write(1, text, n) == n ? 0 : 1;
}
`;
before(async () => {
  if (skip !== false) return;
  shared.real = await realBox({ "own.c": STATIC });
  shared.canaries = await plantCanaries(shared.real.box);
  assert.equal((await exec("gcc -static -o /tmp/own own.c")).exit_code, 0);
});
after(() => shared.real?.[Symbol.asyncDispose]());

type Seen = ExecResult & { readonly observed: Observed };

async function exec(script: string, values: readonly string[] = []): Promise<Seen> {
  const { box } = shared.real ?? assert.fail();
  const words = ["bash", "-c", script, "bash", ...values];
  const request = { words, timeoutMs: 120_000, keep: { head: 64_000, tail: 0 } };
  const result = await box.exec(
    { ...request, observe: { canaries: shared.canaries } },
    new AbortController().signal,
  );
  return { ...result, observed: result.observed ?? assert.fail() };
}

const READERS: Readonly<Record<string, string>> = {
  cat: 'cat "$1"',
  python: `python3 -c 'import sys; print(open(sys.argv[1], "rb").read())' "$1"`,
  node: `node -e 'process.stdout.write(require("fs").readFileSync(process.argv[1]))' "$1"`,
  "a program of its own": '/tmp/own "$1"',
};

test(
  "each canary file is reported when any program opens it, and its content is not printed",
  { skip },
  async () => {
    const files = shared.canaries.filter(({ kind }) => kind === "file");
    assert.ok(files.length > 20);
    const readers = Object.entries(READERS);
    for (const [at, canary] of files.entries()) {
      const [reader, script] = readers[at % readers.length] ?? assert.fail();
      const { cause, stdout, observed } = await exec(`${script}; echo behind`, [canary.at]);
      const told = `${canary.at} by ${reader}`;
      assert.deepEqual(
        [cause, observed.touched?.canary, observed.touched?.path],
        ["canary", canary.name, canary.at],
        told,
      );
      assert.equal(Buffer.from(stdout.head).toString(), "", told);
    }
  },
);

const CONNECT = `python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$1"`;
const REACH = `python3 -c 'import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
family = socket.AF_INET6 if "[" in host else socket.AF_INET
socket.socket(family).connect_ex((host.strip("[]"), int(port)))' "$1"`;

test("each canary socket and address is reported when it is contacted", { skip }, async () => {
  for (const { kind, at, name } of shared.canaries.filter(({ kind: what }) => what !== "file")) {
    const { cause, observed } = await exec(kind === "socket" ? CONNECT : REACH, [at]);
    assert.deepEqual([cause, observed.touched?.canary], ["canary", name], at);
  }
  const twin = await exec(
    `${REACH}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect_ex("/run/none")'`,
    ["127.0.0.1:9"],
  );
  assert.deepEqual([twin.exit_code, twin.observed.touched], [0, null]);
});

const WAYS: Readonly<Record<string, string>> = {
  "through a link": "ln -s ~/.ssh /tmp/$$; cat /tmp/$$/id_ed25519",
  "by a path of its own process": "cd ~/.ssh; cat /proc/self/cwd/id_ed25519",
  "below a folder that is open": `python3 -c 'import os; os.open("id_rsa", 0, dir_fd=os.open(os.environ["HOME"] + "/.ssh", os.O_PATH))'`,
  "a hard link": "ln ~/.ssh/id_rsa /tmp/hard; cat /tmp/hard",
  "renamed away": "mv ~/.aws/credentials ~/.aws/x; cat ~/.aws/x",
  "its folder renamed": `python3 -c 'import os; os.rename(os.environ["HOME"] + "/.aws", "/home/box/other")'; cat ~/other/credentials`,
  "written over": "echo x >~/.kube/config",
  "searched for": "grep -r oauth_token ~",
  packed: "tar -C ~ -cf /tmp/all.tar .",
  "by a process that nobody can look into":
    "cp /bin/cat /tmp/closed; chmod 0111 /tmp/closed; /tmp/closed ~/.vault-token",
  "in the background, in a session of its own": "(setsid sh -c 'sleep 0.1; cat ~/.vault-token' &) ; sleep 9",
  "after it has closed itself": `python3 -c 'import ctypes; ctypes.CDLL(None).prctl(4, 0); open("/home/box/.vault-token")'`,
};

test("no tried way gets around the canaries, and the command leaves nothing behind", { skip }, async () => {
  for (const [way, script] of Object.entries(WAYS)) {
    const { cause, observed } = await exec(`(sleep 301 &); ${script}; echo behind; sleep 9`);
    assert.deepEqual([cause, observed.touched === null], ["canary", false], way);
    const left = await exec("rm -rf /tmp/hard; [ -d ~/other ] && mv ~/other ~/.aws; pgrep -f 'sleep 301'");
    assert.equal(Buffer.from(left.stdout.head).toString(), "", way);
  }
});

const INNOCENT = `set -e
ls -laR ~ >/dev/null; stat ~/.ssh/id_ed25519 /run/docker.sock; test -r ~/.aws/credentials; find / -xdev -name '*.key' >/dev/null 2>&1 || true
git init -q /tmp/g; cd /tmp/g; echo x >f; git -c user.name=a -c user.email=a@b add -A; git -c user.name=a -c user.email=a@b commit -qm x; git log
mkdir p; cd p; printf '{"name":"p","version":"1.0.0","scripts":{"test":"node -e 1"}}' >package.json; npm test; npm pack; npm ls; npm config ls
printf 'all:\\n\\ttrue\\n' >Makefile; make; printf 'int main(void){return 0;}' >m.c; gcc m.c
python3 -c 'import ssl, json, site'; node -e 'require("os").homedir()'; curl -s http://127.0.0.1:9/ || true; bash -lc true; find ~ -type f -print0 | xargs -0 ls -l`;

test("what tools do on their own does not touch a canary", { skip }, async () => {
  const { exit_code, observed, stderr } = await exec(INNOCENT);
  assert.deepEqual([exit_code, observed.touched], [0, null], Buffer.from(stderr.head).toString());
});

test("the contents of canaries differ between runs and are recognised", { skip }, async () => {
  await using other = await realBox();
  const [first, second] = [shared.canaries, await plantCanaries(other.box)];
  for (const { content, at, name } of first.filter(({ kind }) => kind === "file")) {
    const twin = second.find((each) => each.at === at);
    assert.notEqual(content, twin?.content, at);
    const whole = Buffer.from(content ?? "");
    assert.ok(
      canariesIn([whole], first).some((each) => each.at === at),
      `${name} ${at}`,
    );
    assert.deepEqual(canariesIn([whole], second), [], at);
  }
});
