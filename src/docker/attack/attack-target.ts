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
import { makeFolder } from "../../platform/folders.ts";

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
export type Fingerprints = ReadonlyMap<string, string>;

export interface AttackTarget extends AsyncDisposable {
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
    if (owner !== null) await giveTo(root, owner);
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

async function giveTo(folder: string, owner: number): Promise<void> {
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
