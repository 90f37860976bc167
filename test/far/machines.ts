import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { chmod, copyFile, cp, mkdir, rmdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, findEngine, isEngine } from "../../src/docker/engine.ts";
import { COMPILED } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT } from "../fixtures/engine.ts";
import { makeCertificates } from "../fixtures/https-stub.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/**
 * Three machines simulated by namespaces on this one: `near`, where harness is typed; `far`, with its own engine and
 * files, which sees no folder of users, of this checkout or of tests; `jump`, through which far has a second address
 * that near cannot reach directly. A separate line connects near and far. Everything ends with this process.
 */
export interface Machines extends AsyncDisposable {
  /** Near's home, with a workspace `work` in it. */
  readonly place: Scratch;
  /** Direct access to far's engine, to inspect it. */
  readonly engine: Engine;
  /** Runs `harness …` on near. */
  readonly harness: (words: readonly string[], start?: Start) => Promise<Ran>;
  /** Runs a program on near. */
  readonly near: (words: readonly string[], start?: Start) => Promise<Ran>;
  /** Runs a shell line in near's network, as root. */
  readonly onLine: (line: string) => string;
  /** Starts a program on near that runs until it is killed. */
  readonly stays: (words: readonly string[]) => ChildProcess;
}

interface Start {
  readonly env?: Readonly<Record<string, string>>;
  /** Words of a program that runs this one. */
  readonly under?: readonly string[];
  readonly whenBegun?: (child: ChildProcess) => void;
}

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const FAR = "10.213.77.2";
const FAR_BEHIND = "10.213.79.2";
const PROGRAMS = process.env["HARNESS_TEST_SSHD"] ?? "";

/** Folders of users, of tests and of this checkout. */
const HIDDEN = ["/tmp", "/var/tmp", "/srv", "/home", "/root", "/work", "/mnt", "/opt"];

const PASSWD = (home: string): string =>
  [
    `root:x:0:0:root:${home}:/bin/sh`,
    "sshd:x:199:65534::/run/sshd:/usr/sbin/nologin",
    "dev:x:1500:1500::/home/dev:/bin/sh",
    "other:x:1501:1501::/home/other:/bin/sh",
    "nobody:x:65534:65534::/:/usr/sbin/nologin",
    "",
  ].join("\n");
const GROUP = "root:x:0:\ndocker:x:1600:dev\ndev:x:1500:\nother:x:1501:\nnogroup:x:65534:\n";

const SSHD = [
  "HostKey /run/m/host_key",
  "PidFile none",
  "UsePAM no",
  "StrictModes no",
  "AuthorizedKeysFile /run/m/authorized",
  "PasswordAuthentication no",
  "KbdInteractiveAuthentication no",
  "",
].join("\n");

/** The set-up of each separate machine: its own /run and users, nothing of this machine. */
const machine = (folder: string, name: string): string => `
set -e
hostname ${name}
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/m /run/sshd
mount --bind ${folder} /run/m
for file in passwd group hosts; do mount --bind /run/m/$file /etc/$file; done
for folder in ${HIDDEN.filter((each) => existsSync(each)).join(" ")}; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
[ ! -d /etc/docker ] || mount --bind /run/m/docker-etc /etc/docker
mkdir -p /home/dev /home/other && chown 1500:1500 /home/dev && chown 1501:1501 /home/other
cd /
ip link set lo up
LD_LIBRARY_PATH=/run/m/programs/lib/x86_64-linux-gnu:/run/m/programs/usr/lib/x86_64-linux-gnu /run/m/programs/usr/sbin/sshd -D -e -f /run/m/sshd_config 2>/run/m/sshd.log &
`;

const DOCKERD = `
cp /run/m/certs/own.pem /run/m/certs/server.pem
dockerd --data-root /run/m/docker --exec-root /run/m/exec --pidfile /run/m/docker.pid --cgroup-parent /harness-far \\
  -H unix:///run/docker.sock -H unix:///run/m/docker.sock -H tcp://0.0.0.0:2376 \\
  --tlsverify --tlscacert /run/m/certs/ca.pem --tlscert /run/m/certs/own.pem --tlskey /run/m/certs/own.key >/run/m/dockerd.log 2>&1 &
`;

/** Waits until the process that holds the machine is gone. */
const WAIT_FOR_EOF = "cat >/dev/null\n";

export async function startMachines(): Promise<Machines> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await scratch({ "work/a.txt": "one\n" }, "/var/tmp"));
  await filesOf(place);
  stack.defer(removeGroups);
  const alone = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const far = startMachine(stack, alone, `${machine(place.at("far"), "far")}${DOCKERD}${WAIT_FOR_EOF}`);
  const jump = startMachine(stack, alone, `${machine(place.at("jump"), "jump")}${WAIT_FOR_EOF}`);
  // Hides this machine's engine from near.
  const socket = "[ ! -S /run/docker.sock ] || mount --bind /dev/null /run/docker.sock";
  const files = `for file in passwd hosts; do mount --bind ${place.at("near")}/$file /etc/$file; done`;
  const setUp = `set -e; hostname near; ${files}; ${socket}; ip link set lo up; ${WAIT_FOR_EOF}`;
  const near = startMachine(stack, ["--net", "--mount", "--uts"], setUp);
  for (const each of [far, jump, near]) await untilSeparate(each);
  joined([near, "to-far", "10.213.77.1"], [far, "to-near", FAR]);
  joined([near, "to-jump", "10.213.78.1"], [jump, "to-near", "10.213.78.2"]);
  joined([jump, "to-far", "10.213.79.1"], [far, "to-jump", FAR_BEHIND]);
  const there = await answering(`unix://${place.at("far/docker.sock")}`);
  const archive = await engine.api.getImage(image).get();
  await once((await there.api.loadImage(archive)).resume(), "end");
  const known = inside(near, `ssh-keyscan -T 20 ${FAR} far 10.213.78.2 jump 2>/dev/null; true`);
  const behind = inside(jump, `ssh-keyscan -T 20 ${FAR_BEHIND} 2>/dev/null; true`);
  await place.write(".ssh/known_hosts", `${known}${behind}`, 0o600);
  const { run, stays } = programsOf(place, near);
  const all = stack.move();
  return {
    place,
    engine: there,
    near: run,
    harness: (line, start) => run([path.join(ROOT, "bin/harness"), ...line], start),
    onLine: (line) => inside(near, line),
    stays,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The folder that far's engine reads as /etc/docker, if this machine has /etc/docker. */
export const farDocker = (place: Scratch): string | undefined =>
  existsSync("/etc/docker") ? place.at("far/docker-etc") : undefined;

/** Creates the machines' files before the machines start. */
async function filesOf(place: Scratch): Promise<void> {
  execFileSync("chown", ["-R", "1000:1000", place.at("work")]);
  const certs = place.at("far/certs");
  await mkdir(certs, { recursive: true });
  makeCertificates(certs, [`IP:${FAR}`, `DNS:far`]);
  await keysOf(place);
  const users = { passwd: PASSWD("/root"), group: GROUP, hosts: "127.0.0.1 localhost\n", sshd_config: SSHD };
  for (const name of ["far", "jump"]) {
    for (const [file, text] of Object.entries(users)) await place.write(`${name}/${file}`, text);
    await mkdir(place.at(name, "docker-etc"));
    await cp(PROGRAMS, place.at(name, "programs"), { recursive: true, verbatimSymlinks: true });
    await copyFile(place.at(".ssh/id_ed25519.pub"), place.at(name, "authorized"));
  }
  await place.write("near/passwd", PASSWD(place.path));
  await place.write("near/hosts", `127.0.0.1 localhost\n${FAR} far\n10.213.78.2 jump\n`);
}

/** Starts a machine, which ends with its standard input and so with this process. */
function startMachine(stack: AsyncDisposableStack, apart: readonly string[], script: string): ChildProcess {
  const child = spawn("unshare", [...apart, "--propagation", "private", "sh", "-c", script], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  stack.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.stdin?.end();
    child.kill("SIGKILL");
    await ended;
  });
  return child;
}

const netOf = (pid: number | string): string => readlinkSync(`/proc/${pid}/ns/net`);

/** Resolves once the machine has left this process's namespaces. */
async function untilSeparate(child: ChildProcess): Promise<void> {
  const patience = AbortSignal.timeout(20_000);
  while (child.exitCode === null && netOf(child.pid ?? 0) === netOf("self")) {
    if (patience.aborted) break;
    await sleep(20);
  }
  if (child.exitCode !== null || netOf(child.pid ?? 0) === netOf("self"))
    throw new Error("no namespaces can be made here");
}

const inside = (child: ChildProcess, line: string): string =>
  execFileSync("nsenter", ["-t", String(child.pid), "-n", "-m", "-u", "sh", "-c", line], {
    encoding: "utf8",
  });

function programsOf(
  place: Scratch,
  near: ChildProcess,
): { readonly run: Machines["near"]; readonly stays: Machines["stays"] } {
  const inWork = 'cd "$0" && exec "$@"';
  const enter = ["-t", String(near.pid), "-n", "-m", "-u", "sh", "-c", inWork, place.at("work")];
  const own = { PATH: process.env["PATH"], HOME: place.path, ...COMPILED };
  return {
    run: async (line, { env = {}, under = [], whenBegun } = {}) => {
      const child = spawn("nsenter", enter.concat(under, line), {
        env: { ...own, ...env },
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
        timeout: 300_000,
      });
      const texts = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const)
        child[name].on("data", (chunk: Buffer) => (texts[name] += chunk.toString()));
      whenBegun?.(child);
      const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
      return { code, signal, ...texts };
    },
    stays: (line) => spawn("nsenter", enter.concat(line), { env: own, stdio: "pipe" }),
  };
}

type End = readonly [child: ChildProcess, device: string, address: string];

function joined([one, device, address]: End, [other, farDevice, farAddress]: End): void {
  inside(one, `ip link add ${device} type veth peer name ${farDevice} netns ${other.pid}`);
  inside(one, `ip addr add ${address}/24 dev ${device} && ip link set ${device} up`);
  inside(other, `ip addr add ${farAddress}/24 dev ${farDevice} && ip link set ${farDevice} up`);
}

async function keysOf(place: Scratch): Promise<void> {
  await mkdir(place.at(".ssh"), { mode: 0o700 });
  await mkdir(place.at("jump"));
  const key = (file: string, phrase = ""): void =>
    void execFileSync("ssh-keygen", [
      "-q",
      "-t",
      "ed25519",
      "-N",
      phrase,
      "-C",
      "tests",
      "-f",
      place.at(file),
    ]);
  for (const file of [".ssh/id_ed25519", "other_key", "far/host_key", "jump/host_key"]) key(file);
  key("phrase_key", "a phrase");
  await chmod(place.at(".ssh/id_ed25519"), 0o600);
}

async function answering(host: string): Promise<Engine> {
  const patience = AbortSignal.timeout(60_000);
  for (;;) {
    const found = await findEngine({ DOCKER_HOST: host }, 0);
    if (isEngine(found)) return found;
    if (patience.aborted) throw new Error(`the far engine does not answer: ${found.reason}`);
    await sleep(100);
  }
}

/** Removes control groups of containers that ended with their engine. */
async function removeGroups(): Promise<void> {
  const root = "/sys/fs/cgroup";
  const empty = async (folder: string): Promise<void> => {
    if (!existsSync(folder)) return;
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) await empty(path.join(folder, entry.name));
    await rmdir(folder).catch(() => undefined);
  };
  for (const group of readdirSync(root)) await empty(path.join(root, group, "harness-far"));
}
