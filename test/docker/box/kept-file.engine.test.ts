import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { ExecResult } from "../../../src/core/ports.ts";
import { skip } from "../../fixtures/engine.ts";
import { realBox } from "../../fixtures/real-box.ts";

type Real = Awaited<ReturnType<typeof realBox>>;
const shared = { real: undefined as Real | undefined };
before(async () => {
  if (skip === false) shared.real = await realBox();
});
after(() => shared.real?.[Symbol.asyncDispose]());

const NEVER = new AbortController().signal;
const FILE = "/run/left";
const LIMIT = 1000;

function exec(script: string, more = {}): Promise<ExecResult> {
  const { box } = shared.real ?? assert.fail();
  const request = { words: ["bash", "-c", script], timeoutMs: 20_000, keep: { head: 1000, tail: 0 } };
  return box.exec({ ...request, keepFile: { path: FILE, limit: LIMIT }, ...more }, NEVER);
}

const told = ({ keptFile }: ExecResult): string | undefined =>
  keptFile?.kind === "ok" ? Buffer.from(keptFile.value).toString() : keptFile?.code;

/** What a command can put in place of the file, and how it is reported. */
const PLACES: Readonly<Record<string, readonly [script: string, expected: string]>> = {
  "a file": [`printf 'a\\0b' >${FILE}`, "a\0b"],
  "a file of exactly the limit": [`head -c ${LIMIT} /dev/zero | tr '\\0' x >${FILE}`, "x".repeat(LIMIT)],
  "a file that is a byte too large": [`head -c ${LIMIT + 1} /dev/zero >${FILE}`, "EFBIG"],
  "a huge sparse file": [`truncate -s 1T ${FILE} || truncate -s 1G ${FILE}`, "EFBIG"],
  nothing: ["true", "ENOENT"],
  "a FIFO that nobody writes": [`mkfifo ${FILE}`, "EINVAL"],
  "a folder": [`mkdir ${FILE}`, "EISDIR"],
  "a socket": [`python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('${FILE}')"`, "EINVAL"],
  "a link to a file": [`echo other >/tmp/other; ln -s /tmp/other ${FILE}`, "EINVAL"],
  "a link to a device": [`ln -s /dev/zero ${FILE}`, "EINVAL"],
  "a link to what only the first process can see": [`ln -s /proc/1/environ ${FILE}`, "EINVAL"],
  "a link to itself": [`ln -s ${FILE} ${FILE}`, "EINVAL"],
  "an unreadable file": [`echo x >${FILE}; chmod 000 ${FILE}`, "EACCES"],
};

for (const [what, [script, expected]] of Object.entries(PLACES))
  test(`${what} in place of the file is reported, and the box continues`, { skip }, async () => {
    assert.equal(told(await exec(`rm -rf ${FILE}; ${script}`)), expected);
    assert.equal(told(await exec(`rm -rf ${FILE}; echo fine >${FILE}`)), "fine\n");
  });

test("a file that keeps growing is returned within its limit, or is too large", { skip }, async () => {
  const { box } = shared.real ?? assert.fail();
  await exec(`rm -rf ${FILE}; : >${FILE}`);
  const words = ["bash", "-c", `while :; do echo -n x >>${FILE}; done`];
  const job = box.start({ words, timeoutMs: 0, keep: { head: 0, tail: 0 } });
  try {
    for (let at = 0; at < 20; at += 1) {
      const { keptFile } = await exec("true");
      if (keptFile?.kind === "ok") assert.ok(keptFile.value.length <= LIMIT);
      else assert.equal(keptFile?.code, "EFBIG");
    }
  } finally {
    job.kill();
    await job.result;
  }
});

test(
  "a cancelled or timed out command returns no file, and one that leaves processes does",
  { skip },
  async () => {
    const { box } = shared.real ?? assert.fail();
    await exec(`rm -rf ${FILE}; echo old >${FILE}`);
    const request = { words: ["sleep", "60"], timeoutMs: 0, keep: { head: 0, tail: 0 } };
    const cancelled = await box.exec(
      { ...request, keepFile: { path: FILE, limit: LIMIT } },
      AbortSignal.timeout(100),
    );
    const late = await exec("sleep 60", { timeoutMs: 100 });
    const trapped = await exec("trap 'exit 0' TERM; sleep 60 & wait", { timeoutMs: 100 });
    assert.deepEqual([told(cancelled), told(late), told(trapped)], [undefined, undefined, undefined]);
    const left = await exec("setsid sleep 60 & echo new >/run/left; exit 3");
    assert.deepEqual([left.exit_code, left.leftovers, told(left)], [3, 1, "new\n"]);
  },
);

test("a file larger than 256 KiB is not returned", { skip }, async () => {
  const keepFile = { path: FILE, limit: 10_000_000 };
  const size = async (bytes: number): Promise<string | number | undefined> => {
    const { keptFile } = await exec(`rm -rf ${FILE}; head -c ${bytes} /dev/zero >${FILE}`, { keepFile });
    return keptFile?.kind === "ok" ? keptFile.value.length : keptFile?.code;
  };
  assert.deepEqual([await size(256 * 1024), await size(256 * 1024 + 1)], [256 * 1024, "EFBIG"]);
});

test("a command that requires its exact folder does not start where a link leads", { skip }, async () => {
  await exec("mkdir -p /tmp/real/in /tmp/other/in; ln -sfn /tmp/real /tmp/link; ln -sfn in /tmp/real/near");
  const at = async (folder: string): Promise<readonly unknown[]> => {
    const { exit_code, folder_gone, stdout } = await exec("pwd -P", { folder, exactFolder: true });
    return [exit_code, folder_gone, Buffer.from(stdout.head).toString()];
  };
  assert.deepEqual(await at("/tmp/real/in"), [0, undefined, "/tmp/real/in\n"]);
  for (const folder of ["/tmp/link", "/tmp/link/in", "/tmp/real/near", "/tmp/real/../other", "/tmp/nowhere"])
    assert.deepEqual(await at(folder), [126, true, ""], folder);
  assert.equal((await exec("pwd -P", { folder: "/tmp/link/in" })).exit_code, 0);
});
