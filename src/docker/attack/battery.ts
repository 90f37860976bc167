import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmod,
  lchown,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  writeFile,
} from "node:fs/promises";
import { createServer, type Server } from "node:net";
import path from "node:path";
import { reasonOf } from "../../core/errors.ts";
import type { ExecRequest, ExecResult, OwnedBox } from "../../core/ports.ts";
import {
  type Attack,
  attackScript,
  type AttemptResults,
  type AttackFacts,
  judgeAttack,
  type AttackOutcome,
  type AttackOutput,
  readAnswers,
} from "./attack.ts";
import { FILE_ATTACKS } from "./file-attacks.ts";
import { KERNEL_ATTACKS } from "./kernel-attacks.ts";
import { PROCESS_ATTACKS } from "./process-attacks.ts";
import { REACH_ATTACKS } from "./reach-attacks.ts";
import { makeFolder } from "../../platform/folders.ts";

/** Attacks that may cost the box come last. */
export const ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...KERNEL_ATTACKS,
  ...REACH_ATTACKS,
  ...PROCESS_ATTACKS,
];

/** The limits that the attacks rely on. */
export const ATTACKED_LIMITS = { memory: 2 ** 28, cpus: null, pids: 128 };

const KEEP = { head: 64 * 1024, tail: 4 * 1024 };
const ATTEMPT_MS = 10_000;

interface Battery {
  readonly target: AttackTarget;
  readonly facts: AttackFacts;
  /** Opens a box over the target; one at a time. */
  readonly open: (isolation: "bind" | "overlay", signal: AbortSignal) => Promise<OwnedBox>;
  readonly ownKernel: boolean;
}

/** Runs all attacks, one after the other. If a box cannot be opened, that is an outcome of the attacks that need it. */
export async function runBattery(battery: Battery, signal: AbortSignal): Promise<readonly AttackOutcome[]> {
  const outcomes: AttackOutcome[] = [];
  for (const isolation of ["bind", "overlay"] as const) {
    const attacks = ATTACKS.filter(({ layer }) => (layer === true) === (isolation === "overlay"));
    await using resources = new AsyncDisposableStack();
    const opened = await battery.open(isolation, signal).catch((thrown: unknown) => {
      signal.throwIfAborted();
      return `no box could be opened: ${reasonOf(thrown)}`;
    });
    const box = typeof opened === "string" ? lostBox(opened) : resources.use(opened);
    for (const attack of attacks) {
      outcomes.push(await tryAttack(attack, box, battery, signal));
    }
  }
  return outcomes;
}

type Executor = Pick<OwnedBox, "exec" | "log">;

const lostBox = (why: string): Executor => ({ exec: () => Promise.reject(new Error(why)) });

/** Runs one attack and its twin; the host looks before and after. */
async function tryAttack(
  attack: Attack,
  box: Executor,
  { target, facts, ownKernel }: Pick<Battery, "target" | "facts" | "ownKernel">,
  signal: AbortSignal,
): Promise<AttackOutcome> {
  const [before, visits] = [await target.look(attack.layer === true), target.visits()];
  const run = (script: string, timeoutMs: number): Promise<CommandRun> =>
    runCommand(box, target.filled(script), timeoutMs, signal);
  if (attack.first !== undefined) await run(`cd {W}\n${attack.first}\n:`, ATTEMPT_MS);
  const tried =
    attack.asks === undefined
      ? readResults(await run(attackScript(attack.attempts), attack.timeoutMs ?? ATTEMPT_MS))
      : interpretOutput(attack.asks, await run(attack.asks.run, ATTEMPT_MS), facts);
  const newVisits = target.visits() - visits;
  // Files that a command planted deep down are searched for when a box ends, or on request.
  if (attack.counts === "host") await box.log?.().catch(() => undefined);
  const changed = [
    ...changedSince(before, await target.look(attack.layer === true)),
    ...(newVisits > 0 ? [`a server of the host was reached ${newVisits} times`] : []),
  ];
  const twin = readResults(await run(attackScript(attack.twin), ATTEMPT_MS));
  return judgeAttack(attack, { tried, twin, changed, ownKernel });
}

type CommandRun = { readonly result: ExecResult } | { readonly lost: string };

async function runCommand(
  box: Executor,
  script: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<CommandRun> {
  const request: ExecRequest = { words: ["sh", "-c", script], timeoutMs, keep: KEEP };
  try {
    return { result: await box.exec(request, signal) };
  } catch (thrown) {
    signal.throwIfAborted();
    return { lost: reasonOf(thrown) };
  }
}

function readResults(one: CommandRun): AttemptResults {
  if ("lost" in one) return { answers: [], cause: null, lost: one.lost };
  const answers = readAnswers(outputOf(one.result).text);
  return { answers, cause: one.result.cause, lost: null };
}

function interpretOutput(
  { interpret }: NonNullable<Attack["asks"]>,
  one: CommandRun,
  facts: AttackFacts,
): AttemptResults {
  if ("lost" in one) return { answers: [], cause: null, lost: one.lost };
  return { answers: interpret(outputOf(one.result), facts), cause: null, lost: null };
}

function outputOf({ stdout }: ExecResult): AttackOutput {
  const kept = stdout.head.length + stdout.tail.length;
  const text = Buffer.concat([stdout.head, stdout.tail]).toString("utf8");
  return { text, kept, total: stdout.total };
}

/** A folder to attack, and files beside it that must not be reached. All of it is made for this and removed later. */

const FILES: Readonly<Record<string, string>> = {
  "README.md": "readme\n",
  "sub/README.md": "readme\n",
  ".vscode/tasks.json": "{}\n",
  ".claude/settings.json": "{}\n",
  ".mcp.json": "{}\n",
  ".harness/config.json": "{}\n",
  ".envrc": "# nothing\n",
};
const REPOSITORIES = ["", "sub/"];
const GIT: Readonly<Record<string, string>> = {
  HEAD: "ref: refs/heads/main\n",
  config: "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
  "hooks/README": "none\n",
  "objects/info/.keep": "",
  "refs/heads/.keep": "",
};

/** Paths in the folder that the host obeys, existing or not. */
const GUARDED = [
  ...Object.keys(FILES).filter((name) => name.startsWith(".")),
  ...REPOSITORIES.map((folder) => `${folder}.git`),
  ".idea",
  ".husky",
  "a/b/.vscode",
  "c/.git",
];

/** For each path, its kind and content. */
type Fingerprints = ReadonlyMap<string, string>;

interface AttackTarget extends AsyncDisposable {
  readonly workspace: string;
  /** Replaces the words in braces in a command. */
  readonly filled: (text: string) => string;
  /** Everything that must not change; with `all`, the whole workspace. */
  readonly look: (all: boolean) => Promise<Fingerprints>;
  /** How many connections reached the servers that nobody should reach. */
  readonly visits: () => number;
}

/** `parent` is a folder that the engine can mount from; `owner` will own all of it, if the owner can be chosen. */
export async function makeAttackTarget(parent: string, owner: number | null): Promise<AttackTarget> {
  makeFolder(parent);
  const root = await mkdtemp(path.join(await realpath(parent), "attack-"));
  const [workspace, outside] = [path.join(root, "workspace"), path.join(root, "outside")];
  const cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(root, { recursive: true, force: true }));
  try {
    const token = `token-${randomBytes(12).toString("hex")}`;
    await fill(root, token);
    if (owner !== null) await changeOwner(root, owner);
    const counter = { visits: 0 };
    const abstract = `harness-attack-${randomBytes(6).toString("hex")}`;
    const [port, port6] = [
      await listen(cleanup, counter, "127.0.0.1"),
      await listen(cleanup, counter, "::1"),
    ];
    await listen(cleanup, counter, `\0${abstract}`);
    const words: Readonly<Record<string, string>> = {
      W: workspace,
      OUT: outside,
      TOKEN: token,
      PORT: String(port),
      PORT6: String(port6),
      ABSTRACT: abstract,
    };
    return {
      workspace,
      filled: (text) => text.replaceAll(/\{([A-Z0-9]+)\}/g, (whole, name: string) => words[name] ?? whole),
      look: async (all) => {
        const guarded = all ? [workspace] : GUARDED.map((name) => path.join(workspace, name));
        const prints = new Map([[root, (await readdir(root)).toSorted().join(" ")]]);
        for (const one of [outside, ...guarded]) await addFingerprints(one, prints);
        return prints;
      },
      visits: () => counter.visits,
      [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
    };
  } catch (thrown) {
    await cleanup.disposeAsync();
    throw thrown;
  }
}

/** What is different now, one line each. */
export function changedSince(before: Fingerprints, now: Fingerprints): readonly string[] {
  const paths = [...new Set([...before.keys(), ...now.keys()])];
  return paths
    .filter((one) => before.get(one) !== now.get(one))
    .map(
      (one) =>
        `the host finds ${one} ${before.has(one) && now.has(one) ? "changed" : now.has(one) ? "made" : "gone"}`,
    );
}

async function fill(root: string, token: string): Promise<void> {
  await chmod(root, 0o755);
  const git = REPOSITORIES.flatMap((folder) =>
    Object.entries(GIT).map(([name, text]) => [`${folder}.git/${name}`, text] as const),
  );
  const files = [
    ...[...Object.entries(FILES), ...git].map(([name, text]) => [`workspace/${name}`, text] as const),
    ["outside/secret", `${token}\n`] as const,
    ["outside/note", "known bytes\n"] as const,
  ];
  for (const [name, text] of files) {
    const file = path.join(root, name);
    makeFolder(path.dirname(file), 0o777);
    await writeFile(file, text);
  }
}

async function changeOwner(folder: string, owner: number): Promise<void> {
  await lchown(folder, owner, owner);
  for (const each of await readdir(folder, { recursive: true }))
    await lchown(path.join(folder, each), owner, owner);
}

async function listen(
  cleanup: AsyncDisposableStack,
  counter: { visits: number },
  at: string,
): Promise<number> {
  const server: Server = createServer((socket) => {
    counter.visits += 1;
    socket.on("error", () => undefined);
    socket.destroy();
  });
  try {
    server.listen(at.startsWith("\0") ? { path: at } : { host: at, port: 0 });
    await once(server, "listening");
  } catch {
    // A machine without IPv6 or without abstract sockets: nobody can reach such a server there.
    return 1;
  }
  cleanup.defer(async () => {
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function addFingerprints(file: string, prints: Map<string, string>): Promise<void> {
  const stats = await lstat(file).catch(() => undefined);
  if (stats === undefined) return;
  const same = `${stats.mode.toString(8)} ${stats.uid}:${stats.gid} ${stats.ino}`;
  if (stats.isDirectory()) {
    prints.set(file, same);
    for (const name of await readdir(file)) await addFingerprints(path.join(file, name), prints);
  } else if (stats.isSymbolicLink()) prints.set(file, `${same} ${await readlink(file)}`);
  else if (!stats.isFile()) prints.set(file, `${same} odd`);
  else
    prints.set(
      file,
      `${same} ${stats.nlink} ${createHash("sha256")
        .update(await readFile(file))
        .digest("hex")}`,
    );
}
