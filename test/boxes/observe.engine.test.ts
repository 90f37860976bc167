import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Act, Canary, Observed } from "../../src/core/behaviour.ts";
import type { ExecResult } from "../../src/core/ports.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";

type Real = Awaited<ReturnType<typeof realBox>>;
const shared = { real: undefined as Real | undefined };
const KEY: Canary = { name: "a key", kind: "file", at: "/home/box/.ssh/id_ed25519" };
before(async () => {
  if (skip !== false) return;
  shared.real = await realBox();
  await shared.real.box.write(KEY.at, Buffer.from("not a key"));
});
after(() => shared.real?.[Symbol.asyncDispose]());

const NEVER = new AbortController().signal;

type Seen = ExecResult & { readonly observed: Observed };

async function observed(script: string, canaries: readonly Canary[] = [KEY]): Promise<Seen> {
  const { box } = shared.real ?? assert.fail();
  const request = { words: ["bash", "-c", script], timeoutMs: 60_000, keep: { head: 4000, tail: 0 } };
  const result = await box.exec({ ...request, observe: { canaries } }, NEVER);
  const { observed: seen } = result;
  assert.equal(seen?.by, "calls");
  return { ...result, observed: seen };
}

/** From the program with this in its words up to the command itself. */
function chain({ processes }: Observed, word: string): readonly string[] {
  const names: string[] = [];
  let next = processes.findLast(({ words }) => words.includes(word))?.pid;
  while (next !== undefined && next !== 0) {
    const found = processes.findLast(({ pid }) => pid === next);
    names.push(found?.words[0] ?? "?");
    next = found?.parent;
  }
  return names;
}

const paths = ({ acts }: Observed, kind: Act["kind"]): readonly string[] =>
  acts.flatMap((act) => (act.kind === kind && "path" in act ? [act.path] : []));

test("nothing is observed unless requested", { skip }, async () => {
  const { box } = shared.real ?? assert.fail();
  const result = await box.exec(
    { words: ["cat", KEY.at], timeoutMs: 9000, keep: { head: 99, tail: 0 } },
    NEVER,
  );
  assert.deepEqual([result.exit_code, result.observed], [0, undefined]);
});

test("each program is listed below the one that started it", { skip }, async () => {
  const { observed: seen } = await observed(
    `sh -c 'sleep 0.11; :'; python3 -c 'import subprocess; subprocess.run(["sleep", "0.12"])';
     (setsid sh -c 'sleep 0.13 & wait; :' &) ; ( ( sleep 0.14 & ) & ) ; sleep 0.2; :`,
  );
  assert.deepEqual(chain(seen, "0.11"), ["sleep", "sh", "bash"]);
  assert.deepEqual(chain(seen, "0.12"), ["sleep", "python3", "bash"]);
  assert.deepEqual(chain(seen, "0.13"), ["sleep", "sh", "bash"]);
  assert.deepEqual(chain(seen, "0.14").slice(-1), ["bash"]);
});

test("file accesses are reported by kind, except those to the system's own files", { skip }, async () => {
  const { observed: seen } = await observed(
    `mkdir -p /tmp/sub; cd /tmp && echo x >new && cat new && echo y >>new && chmod 600 new && mv new ./sub/../newer && ln -s newer link &&
     rm link && mkdir dir && rmdir dir && cat /etc/hostname ~/.netrc; cd / && cat tmp/newer tmp/newer`,
  );
  assert.deepEqual(
    paths(seen, "make").filter((path) => path.startsWith("/tmp")),
    ["/tmp/sub", "/tmp/new", "/tmp/newer", "/tmp/link", "/tmp/dir"],
  );
  assert.deepEqual(paths(seen, "mode"), ["/tmp/new"]);
  assert.deepEqual(paths(seen, "remove"), ["/tmp/new", "/tmp/link", "/tmp/dir"]);
  assert.ok(paths(seen, "write").includes("/tmp/new"));
  assert.ok(
    ["/etc/hostname", "/home/box/.netrc", "/tmp/newer"].every((path) => paths(seen, "read").includes(path)),
  );
  assert.deepEqual(
    paths(seen, "read").filter((path) => path.startsWith("/usr")),
    [],
  );
  assert.equal(
    seen.acts.find((act) => "path" in act && act.path === "/tmp/newer" && act.kind === "read")?.times,
    2,
  );
});

test(
  "a touched canary ends the command and all it started and is reported with its path; listing it does not",
  { skip },
  async () => {
    const twin = await observed(
      "cd ~/.ssh && ls -la && stat id_ed25519 && test -r id_ed25519 && find ~ >/dev/null",
    );
    assert.deepEqual([twin.exit_code, twin.observed.touched], [0, null]);
    const result = await observed(`(setsid sleep 60 &); sh -c 'cat ~/.ssh/id_ed25519; :'; touch /tmp/after`);
    assert.equal(result.cause, "canary");
    const { touched } = result.observed;
    assert.deepEqual([touched?.canary, touched?.path], ["a key", KEY.at]);
    assert.deepEqual(chain(result.observed, KEY.at), ["cat", "sh", "bash"]);
    const left = await observed("pgrep sleep; ls /tmp/after");
    assert.equal(Buffer.from(left.stdout.head).toString(), "");
  },
);

test("DNS names are read from the queries, however they are sent", { skip }, async () => {
  const { observed: seen } = await observed(`python3 - <<'E'
import socket, struct
def ask(*what):
    try: socket.getaddrinfo(*what)
    except OSError: pass
ask("both.example", 80)
ask("four.example", 80, socket.AF_INET)
q = lambda name: struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in name.split(b".")) + struct.pack(">BHH", 0, 16, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(q(b"to.example"), ("127.0.0.1", 53))
s.sendmsg([q(b"message.example")], [], 0, ("127.0.0.1", 5300))
a, b = socket.socketpair()
no = q(b"no.example")
# What only looks like one: an answer, two questions, a label beyond the end, more behind it, another class, other text.
for body in [no[:2] + bytes([0x81, 0x80]) + no[4:], no[:5] + bytes([2]) + no[6:], no[:12] + bytes([63]) + no[13:],
             no + b"x", no[:-1] + bytes([7]), b"GET / HTTP/1.1 and more of it"]:
    a.send(body)
E
node -e 'require("dns").resolve("node.example", () => {}); setTimeout(() => process.exit(), 300)'`);
  const names = new Set(seen.acts.flatMap((act) => (act.kind === "name" ? [act.name] : [])));
  assert.deepEqual([...names].toSorted(), [
    "both.example",
    "four.example",
    "message.example",
    "node.example",
    "to.example",
  ]);
});
