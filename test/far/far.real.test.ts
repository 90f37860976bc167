import assert from "node:assert/strict";
import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { copyFile, mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import test, { after, before } from "node:test";
import { type Machines, type Ran, startMachines } from "./machines.ts";

const SSH = ["--engine", "ssh://dev@far"];
let machines: Machines;
before(async () => {
  machines = await startMachines();
});
after(() => machines[Symbol.asyncDispose]());

const exec = (words: readonly string[], line = "cat a.txt"): Promise<Ran> =>
  machines.harness(["sandbox", "exec", ...words, "--", "sh", "-c", line]);

/** A model's replies, one per request; each process begins with the first. */
async function scripted(...commands: readonly string[]): Promise<readonly string[]> {
  const calls = commands.map((command) => ({ reply: [{ call: "bash", args: { command } }] }));
  const lines = [...calls, { reply: ["Everything is done."] }].map((each) => JSON.stringify(each));
  const file = await machines.place.write("model.jsonl", `${lines.join("\n")}\n`);
  return ["--provider", "scripted", "--model", file];
}

interface Finished {
  readonly status: string;
  readonly exit_code: number;
  readonly session: string;
  readonly reason: string;
}

function finishedOf({ stdout, stderr }: Ran): Finished {
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  assert.match(last, /"run\.finished"/, stdout + stderr);
  return JSON.parse(last) as Finished;
}

const begunIn = (id: string): string => `echo ${id} > begun; touch ${id}; sleep 15; echo ended >> begun`;

/** The number of boxes there, according to its own command line. */
const boxesThere = async (): Promise<number> =>
  (await machines.engine.api.listContainers({ all: true })).length;

async function until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const patience = AbortSignal.timeout(60_000);
  while (!(await isSo())) {
    if (patience.aborted) assert.fail(what);
    await sleep(100);
  }
}

/** Processes `ssh` in the network of this one, oldest first. */
function sshOf(child: ChildProcess): readonly number[] {
  const net = readlinkSync(`/proc/${child.pid}/ns/net`);
  const all = execFileSync("sh", ["-c", "pgrep -x ssh || true"], { encoding: "utf8" });
  const pids = all.split("\n").filter(Boolean).map(Number);
  return pids.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/net`) === net && readFileSync(`/proc/${pid}/cmdline`).length > 0;
    } catch {
      return false;
    }
  });
}

test("a run on the far engine works on a copy and can be continued, and diff, apply and undo find it without naming the engine again", async () => {
  const { place, harness } = machines;
  const model = await scripted("echo two >> a.txt; rm -f old; echo new > b.txt; hostname > who");
  const ran = await harness(["run", "--json", ...SSH, ...model, "change it"]);
  const { status, session } = finishedOf(ran);
  assert.equal(status, "done", ran.stderr);
  assert.equal(await place.read("work/a.txt"), "one\n");
  const diff = await harness(["diff", session]);
  assert.match(diff.stdout, /^ one\n\+two$/m, diff.stderr);
  const more = await scripted("cat b.txt && echo three >> a.txt");
  const again = await harness(["run", "--json", "--continue", ...more, "go on"]);
  assert.equal(finishedOf(again).status, "done", again.stdout + again.stderr);
  const applied = await harness(["apply", session]);
  assert.equal(applied.code, 0, applied.stderr);
  assert.deepEqual(
    [await place.read("work/a.txt"), await place.read("work/b.txt")],
    ["one\ntwo\nthree\n", "new\n"],
  );
  const undone = await harness(["undo", session]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual([await place.read("work/a.txt"), existsSync(place.at("work/b.txt"))], ["one\n", false]);
});

test("the far engine is also reached over TLS and through another user's socket, and a box there is verified", async () => {
  const { place, harness } = machines;
  await mkdir(place.at(".docker"));
  for (const [from, to] of [
    ["ca.pem", "ca.pem"],
    ["own.pem", "cert.pem"],
    ["own.key", "key.pem"],
  ] as const)
    await copyFile(place.at("far/certs", from), place.at(".docker", to));
  for (const engine of [
    "tcp://10.213.77.2:2376",
    "https://10.213.77.2:2376",
    "ssh://root@far/run/m/docker.sock",
  ]) {
    const ran = await exec(["--engine", engine]);
    assert.deepEqual([ran.code, ran.stdout], [0, "one\n"], ran.stderr);
  }
  await rm(place.at(".docker"), { recursive: true });
  const refused = await exec(["--engine", "tcp://10.213.77.2:2376"]);
  assert.match(refused.stderr, /no TLS certificates/);
  const doctor = await harness(["doctor", ...SSH]);
  assert.match(doctor.stdout, /^ok +box +verified/m, doctor.stderr);
});

test("the user's own ssh settings apply: a shared connection, a host behind another, a slow line", async () => {
  const { place } = machines;
  const slow = `${process.execPath} ${path.join(import.meta.dirname, "slow-line.ts")} %h %p 80`;
  const hosts = [
    `Host mux\n HostName far\n ControlMaster auto\n ControlPath ${place.at(".ssh/cm-%C")}\n ControlPersist 30`,
    `Host alone\n HostName far\n ControlMaster auto\n ControlPath ${place.at(".ssh/own-%C")}`,
    "Host behind\n HostName 10.213.79.2\n ProxyJump dev@jump",
    "Host asks\n HostName far\n RemoteCommand echo hi\n RequestTTY yes\n LocalForward 9999 localhost:22",
    `Host slow\n HostName far\n ProxyCommand ${slow}`,
  ];
  await place.write(".ssh/config", `${hosts.join("\n")}\n`, 0o600);
  for (const host of ["mux", "mux", "alone", "behind", "asks", "slow"]) {
    const ran = await exec(["--engine", `ssh://dev@${host}`]);
    assert.deepEqual([ran.code, ran.stdout], [0, "one\n"], `${host}: ${ran.stderr}`);
  }
  await machines.near(["ssh", "-O", "exit", "dev@mux"]);
  await rm(place.at(".ssh/config"));
});

const REFUSALS: Readonly<Record<string, readonly [string, string, RegExp]>> = {
  "an unknown host key": ["UserKnownHostsFile /dev/null", "dev@x", /the host's key is not known here/],
  "another user's key": ["IdentityFile OTHER", "dev@x", /the host refused the log-in/],
  "a key with a passphrase that nobody can type": [
    "IdentityFile PHRASE",
    "dev@x",
    /the host refused the log-in/,
  ],
  "a user who may not use the engine": ["", "other@x", /that user may not use the engine there/],
  "a socket where nobody listens": ["", "dev@x/run/none.sock", /the engine there is not running/],
  "a port where nobody listens": ["", "dev@x:2222", /cannot connect to the host/],
};

for (const [what, [setting, address, says]] of Object.entries(REFUSALS))
  test(`${what} is reported with the command to try`, async () => {
    const { place } = machines;
    const files = setting.replace("OTHER", place.at("other_key")).replace("PHRASE", place.at("phrase_key"));
    await place.write(".ssh/config", `Host x\n HostName far\n IdentitiesOnly yes\n ${files}\n`, 0o600);
    const ran = await exec(["--engine", `ssh://${address}`]);
    await rm(place.at(".ssh/config"));
    assert.deepEqual([ran.code, ran.stdout], [125, ""], ran.stderr);
    assert.match(ran.stderr, says);
    assert.match(ran.stderr, /^ +next: .*ssh (?:-p 2222 )?(?:\w+@)?x (?:true|docker version)$/m);
  });

/** On near's loopback; used as a proxy it answers for any host. */
async function serverOfNear(): Promise<AsyncDisposable> {
  const code = `require("node:http").createServer((q,s)=>s.end("NEAR "+q.url+"\\n")).listen(8099,"127.0.0.1",()=>console.log("up"))`;
  const child = machines.stays([process.execPath, "-e", code]);
  assert.ok(child.stdout !== null);
  await once(child.stdout, "data");
  return {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

test("a box there reaches a granted host of the near machine, and nothing else", async () => {
  await using _ = await serverOfNear();
  const line =
    "curl -sS --noproxy '' http://127.0.0.1:8099/x; curl -fsS -m 5 http://elsewhere.test/ && echo out";
  const ran = await exec([...SSH, "--allow-domain", "127.0.0.1:8099"], line);
  assert.equal(ran.stdout.replace(/^harness: .*\n/gm, ""), "NEAR /x\n", ran.stderr);
});

test("a box waits frozen there, receives what is granted with the answer, and continues", async () => {
  await using _ = await serverOfNear();
  const env = { HTTP_PROXY: "http://127.0.0.1:8099", NO_PROXY: "127.0.0.1,localhost" };
  const { harness, engine } = machines;
  const model = await scripted("curl -sS -m 20 http://files.test/1 > got");
  const asked = await harness(["run", "--json", "--on-ask", "park", ...SSH, ...model, "do it"], { env });
  const { status, session } = finishedOf(asked);
  assert.equal(status, "parked", asked.stderr);
  const [box, ...more] = await engine.api.listContainers({ all: true });
  assert.deepEqual([box?.State, more], ["paused", []]);
  await scripted("cat got");
  const done = await harness(["approve", session, "--json", "--session", "--allow-domain", "files.test"], {
    env,
  });
  assert.equal(finishedOf(done).status, "done", done.stdout + done.stderr);
  assert.doesNotMatch(done.stderr, /A new one goes on/);
  const diff = await harness(["diff", session]);
  assert.match(diff.stdout, /^\+NEAR http:\/\/files\.test\/1$/m, diff.stderr);
  await until("the box stays", async () => (await boxesThere()) === 0);
});

/** Waits until the call has begun there, without touching the box, which would be noticed. */
async function whenBegun(): Promise<void> {
  await until("the call does not begin", async () => {
    for (const { Id } of await machines.engine.api.listContainers()) {
      const told: unknown = await machines.engine.api
        .getContainer(Id)
        .top()
        .catch(() => undefined);
      if (JSON.stringify(told ?? "").includes("sleep 15")) return true;
    }
    return false;
  });
}

function cut(child: ChildProcess): void {
  for (const pid of sshOf(child)) process.kill(pid, "SIGKILL");
}

const killed = (child: ChildProcess): boolean => process.kill(-(child.pid ?? 0), "SIGKILL");

for (const [how, end] of [
  ["the connection is cut", cut],
  ["harness is killed", killed],
] as const)
  test(`where ${how} in the middle of a call, what it had changed is kept, and its box is removed`, async () => {
    const id = how.replaceAll(" ", "-");
    const model = await scripted(begunIn(id));
    let begun: Promise<void> = Promise.resolve();
    const ran = await machines.harness(["run", "--json", ...SSH, ...model, "change it"], {
      whenBegun: (child) => {
        begun = whenBegun().then(() => void end(child));
      },
    });
    await begun;
    const said = /"session":"(\w+)"/.exec(ran.stdout)?.[1] ?? assert.fail(ran.stdout + ran.stderr);
    if (ran.signal === null) {
      const { exit_code, reason } = finishedOf(ran);
      assert.deepEqual([exit_code, /the box was lost: ssh ended/.test(reason)], [6, true], reason);
    }
    const diff = await machines.harness(["diff", said]);
    assert.match(diff.stdout, new RegExp(`^\\+${id}$`, "m"), diff.stderr);
    assert.doesNotMatch(diff.stdout, /^\+ended$/m);
    await until("its box stays", async () => (await boxesThere()) === 0);
  });

async function downForSeconds(): Promise<void> {
  machines.onLine("ip link set to-far down");
  await sleep(4000);
  machines.onLine("ip link set to-far up");
}

test("a connection that is down for some seconds is waited for", async () => {
  const { harness } = machines;
  const model = await scripted(begunIn("line"));
  let back: Promise<void> = Promise.resolve();
  const ran = await harness(["run", "--json", ...SSH, ...model, "change it"], {
    whenBegun: () => {
      back = whenBegun().then(downForSeconds);
    },
  });
  await back;
  const { status, session } = finishedOf(ran);
  assert.equal(status, "done", ran.stderr);
  assert.match((await harness(["diff", session])).stdout, /^\+ended$/m);
});

test("another machine's user with the same number removes neither boxes nor changes of this one", async () => {
  const { place, harness, engine } = machines;
  const boot = await place.write("boot", "11111111-2222-3333-4444-555555555555\n");
  const other = 'hostname other && mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';
  const under = ["unshare", "--mount", "--uts", "sh", "-c", other, boot];
  const model = await scripted(begunIn("shared"));
  let beside: Promise<readonly [Ran, number]> = Promise.reject(new Error("never begun"));
  beside.catch(() => undefined);
  const ran = await harness(["run", "--json", ...SSH, ...model, "change it"], {
    whenBegun: () => {
      beside = whenBegun().then(async () => {
        const theirs = await harness(["sandbox", "exec", ...SSH, "--", "hostname"], { under });
        return [theirs, await boxesThere()];
      });
    },
  });
  const [theirs, boxes] = await beside;
  assert.deepEqual([theirs.code, boxes], [0, 1], theirs.stderr);
  const { status, session } = finishedOf(ran);
  assert.equal(status, "done", ran.stderr);
  const volumes = async (): Promise<number> => ((await engine.api.listVolumes()).Volumes ?? []).length;
  const before = await volumes();
  // It has none of the sessions here, and its user keeps sessions in a folder of the same name.
  await place.write("others/.keep", "");
  const hidden = `mount --bind ${place.at("others")} ${place.at(".local/state")} && exec "$@"`;
  const without = [...under, "sh", "-c", hidden, "sh"];
  const again = await harness(["sandbox", "exec", ...SSH, "--", "true"], { under: without });
  assert.deepEqual([again.code, await volumes()], [0, before], again.stderr);
  assert.match((await harness(["diff", session])).stdout, /^\+ended$/m);
});
