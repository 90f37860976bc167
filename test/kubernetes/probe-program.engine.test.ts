import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";

/** The image's own program (sandbox/probe), in a box without a network. */

type Real = Awaited<ReturnType<typeof realBox>>;
const shared = { real: undefined as Real | undefined };
before(async () => {
  if (skip === false) shared.real = await realBox();
});
after(() => shared.real?.[Symbol.asyncDispose]());

interface Said {
  readonly code: number;
  /** NOW ANSWERED SLOWEST QUIET WAITED */
  readonly lines: readonly (readonly number[])[];
  readonly errors: string;
}

async function said(script: string): Promise<Said> {
  const { box } = shared.real ?? assert.fail();
  const request = {
    words: ["bash", "-c", script],
    timeoutMs: 60_000,
    keep: { head: 2 ** 20, tail: 0 },
  };
  const { exit_code, stdout, stderr } = await box.exec(request, new AbortController().signal);
  const lines = Buffer.from(stdout.head).toString().trim().split("\n");
  return {
    code: exit_code,
    lines: lines.map((line) => line.split(" ").map(Number)),
    errors: Buffer.from(stderr.head).toString(),
  };
}

const PROBE = "/usr/local/lib/harness/probe";

test("a refused connection counts as an answer, whatever other targets do", { skip }, async () => {
  const { lines } = await said(`TO='127.0.0.1 9' timeout 1 ${PROBE} 20 '$TO' '192.0.2.1 443'`);
  const [now = 0, answered = 0, slowest = 0, quiet = 0, waited = 0] = lines.at(-1) ?? [];
  assert.ok(now > 0 && answered >= 2 && slowest < 1000, lines.join("\n"));
  assert.ok(quiet < now && waited < answered, "a silence begins after the last answer");
});

test("without a route nothing has answered, and every attempt counts", { skip }, async () => {
  const { lines } = await said(`timeout 1 ${PROBE} 20 '192.0.2.1 443' '2001:db8::1 443'`);
  const [now = 0, answered = 0, , quiet = 0, waited = 0] = lines.at(-1) ?? [];
  assert.deepEqual([answered, waited], [0, lines.length], lines.join("\n"));
  assert.ok(quiet <= now);
});

/** A listener with a full queue, so that the kernel answers nothing until it is emptied. */
const LISTENER = `
import socket, sys, time
full = socket.socket()
full.bind(("127.0.0.1", 4000))
full.listen(0)
held = [socket.create_connection(("127.0.0.1", 4000)) for _ in range(1)]
print("ready", file=sys.stderr, flush=True)
sys.stdin.readline()
while True: held.append(full.accept())
`;

test("silence is reported for as long as it lasts, and a late answer ends it", { skip }, async () => {
  const { lines, errors } = await said(`
exec 2> >(cat >&2)
coproc L { exec python3 -c '${LISTENER}' 2>&1; }
read -r ready <&"\${L[0]}"
${PROBE} 20 '127.0.0.1 4000' & probe=$!
sleep 0.6; echo go >&"\${L[1]}"; sleep 1.2; kill $probe`);
  const before = lines.filter(([now = 0]) => now < 500);
  const silent = before.at(-1) ?? [];
  assert.equal(silent[1], 0, `${lines.join("\n")} ${errors}`);
  assert.equal(silent[3], silent[0]);
  assert.ok(
    (silent[4] ?? 0) > 0 && (silent[4] ?? 0) < before.length,
    "the last attempts have not waited long enough",
  );
  const last = lines.at(-1) ?? [];
  assert.ok((last[1] ?? 0) > 0 && (last[3] ?? 0) < (last[0] ?? 0), lines.join("\n"));
  assert.ok((last[2] ?? 0) >= 500, "the kernel repeated these attempts, and was answered then");
});

for (const [what, words] of [
  ["a name", `20 'host.example 443'`],
  ["no port", `20 '192.0.2.1'`],
  ["an unset variable", `20 '$NOBODY'`],
] as const)
  test(`${what} is refused as a target`, { skip }, async () => {
    const { code, errors } = await said(`${PROBE} ${words}`);
    assert.equal(code, 2);
    assert.match(errors, /^no address and port in digits: /);
  });
