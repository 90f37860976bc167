import { isDependencies, isTest } from "../../core/file-names.ts";
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { plural } from "../../core/wording.ts";
import type { Finding, LookedAtTree, TreeEntry } from "../../core/behaviour.ts";
import type { Handoff } from "../../core/run-record.ts";
import { lookAtBuildFile } from "../build-files.ts";
import {
  lookAtGyp,
  lookAtNpmrc,
  lookAtPackage,
  lookAtPipfile,
  lookAtPth,
  lookAtPyproject,
  lookAtRequirements,
  lookAtSetup,
  lookAtYarnrc,
} from "../package-installs.ts";
import { Scripts } from "../scripts.ts";
import type { LockEntry } from "../manifests.ts";
import { judgeFit, judgeLock, manifestEntries } from "../judge-locks.ts";
import { readLock } from "../read-locks.ts";
import type { TreeFacts } from "../compare-versions.ts";
import { Archives } from "./archives.ts";
import { lookAtBinary, lookAtDeception, lookAtPickle } from "./disguised.ts";
import { dangersIn } from "./danger.ts";
import { lookAtGitFile, lookAtModeline, lookAtObeyed } from "./obeyed-files.ts";
import { Findings, isCode, type LookedAtFile, readLookedAt } from "./looked-at.ts";
import { lookAtTalk } from "./model-talk.ts";
import { OddEntries, OddNames } from "./odd-entries.ts";

interface LookOptions {
  readonly signal: AbortSignal;
  /** Why the host runs or obeys a path, by the policy's tables. */
  readonly obeys: (path: string) => Handoff | undefined;
  /** Whether the time for the look is used up; left out: never. */
  readonly isLate?: () => boolean;
}

export interface TreeLook {
  readonly findings: readonly Finding[];
  readonly files: number;
  readonly bytes: number;
  /** Facts to compare the tree with another. */
  readonly facts: TreeFacts;
}

/** Most entries that are looked at. */
const MAX_ENTRIES = 300_000;
/** Most bytes that are read of all files together. */
const MAX_READ = 2 ** 30;
/** Most entries of all locks together. */
const MAX_LOCKED = 100_000;
const MAX_HOSTS = 10_000;
const HOST = /\b(?:https?|wss?|ftp|git|ssh):\/\/(?:[^/@\s"']{0,100}@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)/g;
const EXECUTABLE = 0o111;
/** Files that are looked at before other work gets a chance. */
const AT_ONCE = 50;

/** Looks at a tree before anything in it runs. Nothing in it is run, loaded, unpacked or followed. */
export async function lookAt(tree: LookedAtTree, options: LookOptions): Promise<TreeLook> {
  const found = new Findings();
  const entries = await entriesOf(tree, found, options);
  const files = entries.filter(({ kind }) => kind === "file");
  const look = new Look(tree, { ...options, found, files });
  await look.all();
  return {
    findings: found.all(),
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    facts: look.facts(),
  };
}

/** Packed data of git's own: no person gave the names in it. */
const PACKED = /(?:^|\/)\.git\/(?:.*\/)?(?:objects|lfs|logs|refs)\//;

async function entriesOf(
  tree: LookedAtTree,
  found: Findings,
  { signal, isLate }: LookOptions,
): Promise<readonly TreeEntry[]> {
  const entries: TreeEntry[] = [];
  const odd = new OddEntries(found);
  const names = new OddNames(found);
  for await (const entry of tree.entries(signal)) {
    if (PACKED.test(entry.path)) continue;
    if (entries.length % AT_ONCE === 0 && isLate?.() === true) {
      found.add("look.more", `the time was up after ${entries.length} files and folders were found`);
      break;
    }
    if (entries.length >= MAX_ENTRIES) {
      found.add("look.more", `there are more than ${MAX_ENTRIES} files and folders`);
      break;
    }
    entries.push(entry);
    odd.see(entry);
    names.see(entry);
  }
  odd.end();
  return entries;
}

interface LookContext extends LookOptions {
  readonly found: Findings;
  readonly files: readonly TreeEntry[];
}

/** Looks at the files of one tree. Each is read once, and again where scripts call it. */
class Look {
  readonly #tree: LookedAtTree;
  readonly #context: LookContext;
  readonly #byPath: ReadonlyMap<string, TreeEntry>;
  readonly #scripts: Scripts;
  readonly #archives: Archives;
  readonly #locked: LockEntry[] = [];
  readonly #obeyed = new Map<string, { readonly handoff: Handoff; readonly digest: string }>();
  readonly #programs = new Set<string>();
  readonly #hosts = new Map<string, string>();
  #left = MAX_READ;

  constructor(tree: LookedAtTree, context: LookContext) {
    this.#tree = tree;
    this.#context = context;
    this.#byPath = new Map(context.files.map((entry) => [entry.path, entry]));
    this.#scripts = new Scripts(context.found, this.#reader());
    this.#archives = new Archives(context.found, tree);
  }

  #reader(): {
    readonly has: (path: string) => boolean;
    readonly read: (path: string) => Promise<LookedAtFile | undefined>;
  } {
    return { has: (path) => this.#byPath.has(path), read: (path) => this.#read(path) };
  }

  facts(): TreeFacts {
    return {
      findings: this.#context.found.every(),
      scripts: this.#scripts.seen,
      obeyed: this.#obeyed,
      programs: this.#programs,
      hosts: this.#hosts,
      locks: this.#locked,
    };
  }

  /** Keeps the facts of a file by which trees are compared. */
  #keepFacts(file: LookedAtFile, handoff: Handoff | undefined): void {
    const { path, bytes, text = "", mode } = file;
    if (path.split("/").some(isDependencies)) return;
    if (handoff !== undefined)
      this.#obeyed.set(path, { handoff, digest: createHash("sha256").update(bytes).digest("hex") });
    if ((mode & EXECUTABLE) !== 0) this.#programs.add(path);
    if ((!isCode(file) && handoff === undefined) || /lock|requirements|go\.sum$/.test(file.lower)) return;
    for (const [, host = ""] of text.matchAll(HOST)) {
      const lower = host.toLowerCase();
      if (this.#hosts.size < MAX_HOSTS && !this.#hosts.has(lower)) this.#hosts.set(lower, path);
    }
  }

  async #read(path: string): Promise<LookedAtFile | undefined> {
    const entry = this.#byPath.get(path);
    return entry === undefined || this.#left <= 0 ? undefined : await readLookedAt(this.#tree, entry);
  }

  async all(): Promise<void> {
    const { files, signal, found, isLate } = this.#context;
    for (const [count, { path }] of files.entries()) {
      if ((count + 1) % AT_ONCE === 0) await nextTurn();
      signal.throwIfAborted();
      if (isLate?.() === true) {
        found.add("look.more", `the time was up after ${count} of ${plural(files.length, "file")} were read`);
        break;
      }
      const file = await this.#read(path);
      if (file === undefined) continue;
      this.#left -= file.bytes.length;
      try {
        await this.#file(file);
      } catch (thrown) {
        signal.throwIfAborted();
        found.add("look.more", `it could not be examined: ${thrown instanceof Error ? thrown.message : ""}`, {
          path,
        });
      }
    }
    if (this.#left <= 0) found.add("look.more", `there are more than ${MAX_READ} bytes of text`);
  }

  async #file(file: LookedAtFile): Promise<void> {
    const { found, obeys, signal } = this.#context;
    if (lookAtGitFile(file, found)) return;
    lookAtBinary(file, found);
    lookAtPickle(file, found);
    await this.#archives.look(file, signal);
    lookAtDeception(file, found);
    lookAtTalk(file, found);
    const handoff = obeys(file.path);
    this.#keepFacts(file, handoff);
    if (file.text === undefined) return;
    lookAtModeline(file, found);
    if (handoff?.tier === "dangerous") await lookAtObeyed(file, handoff, { scripts: this.#scripts, found });
    await this.#locks(file);
    if (await this.#manifest(file)) return;
    if (isCode(file)) this.#code(file, file.text);
  }

  /** Leaves out installed packages: their locks and manifests were judged where they were made. */
  async #locks(file: LookedAtFile): Promise<void> {
    if (file.path.split("/").some(isDependencies)) return;
    const { found } = this.#context;
    const entries = readLock(file);
    const dependencies = manifestEntries(file);
    if (dependencies.length > 0) judgeLock(dependencies, found);
    if (entries === undefined) return;
    judgeLock(entries, found);
    for (const entry of entries) if (this.#locked.length < MAX_LOCKED) this.#locked.push(entry);
    if (file.lower !== "package-lock.json") return;
    const manifest = await this.#read(`${file.path.slice(0, -file.name.length)}package.json`);
    if (manifest !== undefined) judgeFit(manifest, file, found);
  }

  async #manifest(file: LookedAtFile): Promise<boolean> {
    const { found } = this.#context;
    const [scripts, tree] = [this.#scripts, this.#reader()];
    const { lower } = file;
    if (lower === "package.json") await lookAtPackage(file, tree, scripts, found);
    else if (lower === "binding.gyp") await lookAtGyp(file, scripts);
    else if (lower === ".npmrc") lookAtNpmrc(file, found);
    else if (/^(?:\.yarnrc(?:\.yml)?|\.?bunfig\.toml)$/.test(lower))
      await lookAtYarnrc(file, { tree, scripts, found });
    else if (/^\.?pnpmfile\.[cm]?js$/.test(lower)) await this.#itself(file, "pnpm install");
    else if (lower === "setup.py") await lookAtSetup(file, scripts, found);
    else if (lower === "pyproject.toml") await lookAtPyproject(file, { tree, scripts, found });
    else if (lower === "pipfile") lookAtPipfile(file, found);
    else if (file.ending === ".pth") await lookAtPth(file, scripts, found);
    else if (/^(?:site|user)customize\.py$/.test(lower)) {
      found.add("install.python-start", "Python loads it every time it starts", { path: file.path });
      await this.#itself(file, "python");
    } else if (/^(?:.*requirements.*\.(?:txt|in)|constraints.*\.txt|pip\.conf|pip\.ini)$/.test(lower))
      lookAtRequirements(file, found);
    // In a Go file only some lines of comments are commands; the rest is a program's own code.
    else return (await lookAtBuildFile(file, { tree, scripts, found })) && file.ending !== ".go";
    return true;
  }

  #itself({ path, text = "" }: LookedAtFile, what: string): Promise<void> {
    this.#context.found.add("install.script", what, { path });
    return this.#scripts.look({ path, what, text, runs: "itself" });
  }

  /** Looks at a program's own code for what no program has a reason for. */
  #code({ path, ending }: LookedAtFile, text: string): void {
    const shell = /^\.(?:sh|bash|zsh)$/.test(ending) || /^#![^\n]{0,60}sh\b/.test(text);
    for (const danger of dangersIn(text, isTest(path) ? "tested" : shell ? "shell" : "loaded"))
      this.#context.found.add(danger.rule, danger.text, { path, line: danger.line });
  }
}
