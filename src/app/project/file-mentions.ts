import { lstatSync } from "node:fs";
import { realpath } from "node:fs/promises";
import path from "node:path";
import { visibleWhole } from "../../core/visible.ts";
import { isIgnored } from "../../policy/paths/ignore-rules.ts";
import { FolderTree } from "../../platform/folder-tree.ts";
import { folderOf, isRuleFile, Sieve } from "../../search/files/workspace-scan.ts";
import type { Host } from "../host.ts";
import { ignoreRulesOf } from "./policy-context.ts";
import { PATH_RULES } from "./search-access.ts";

/**
 * Files that a person names with `@`. The host looks at a workspace that may be hostile: no link is followed, only
 * ignore rules are read, and what `.harnessignore` hides is neither offered nor named.
 */

/** How many entries are examined for one answer. */
const MAX_SEEN = 50_000;
export const MAX_OFFERED = 40;
export const MAX_NAMED = 20;
const MAX_PATH = 300;
const MAX_FILE = 1024 * 1024;

type Places = Pick<Host, "places">;

/** Candidates, best first, and only those that fit as well as the best one; folders end with a slash. */
export async function fileCandidates(
  host: Places,
  workspace: string,
  typed: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const wanted = typed.toLowerCase();
  const found: { readonly rank: number; readonly file: string }[] = [];
  for await (const file of filesOf(host, workspace, signal)) {
    const rank = rankOf(file, wanted);
    if (rank !== undefined) found.push({ rank, file });
  }
  const best = found.reduce((least, { rank }) => Math.min(least, rank), Infinity);
  return found
    .filter(({ rank }) => rank === best)
    .map(({ file }) => file)
    .toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    .slice(0, MAX_OFFERED);
}

/** The rank of a match, 0 being the best; undefined for no match. Ignores letter case. */
export function rankOf(file: string, wanted: string): number | undefined {
  const whole = file.toLowerCase();
  if (wanted === "") return depthOf(whole);
  if (whole.startsWith(wanted)) return 0;
  const name = path.posix.basename(whole);
  if (name.startsWith(wanted)) return 1;
  if (name.includes(wanted)) return 2;
  if (whole.includes(wanted)) return 3;
  let at = 0;
  for (const letter of wanted) {
    at = whole.indexOf(letter, at) + 1;
    if (at === 0) return undefined;
  }
  return 4;
}

const depthOf = (file: string): number => file.replace(/\/$/, "").split("/").length;

/** Walks folder by folder: the rules of a folder are known before any of its entries is returned. */
async function* filesOf(host: Places, workspace: string, signal: AbortSignal): AsyncGenerator<string> {
  const hidden = await hiddenIn(host, workspace);
  const tree = new FolderTree(workspace);
  const texts = new Map<string, string>();
  const sieve = new Sieve(PATH_RULES, texts, MAX_FILE);
  const ready: string[] = [];
  let beside: { readonly path: string; readonly kind: string; readonly size: number }[] = [];
  const entered = new Set<string>();
  const settle = async (): Promise<void> => {
    const rules = beside.find((each) => each.kind === "file" && isRuleFile(each.path) && isGit(each.path));
    const text = rules && (await tree.read(rules.path, PATH_RULES.mostOfList * 4));
    if (rules !== undefined && text !== undefined) texts.set(rules.path, Buffer.from(text).toString("utf8"));
    for (const { path: at, kind, size } of beside) {
      if (!isPlain(at) || hidden(at, kind === "folder")) continue;
      if (kind === "folder" && sieve.enters(at)) {
        entered.add(at);
        ready.push(`${at}/`);
      }
      if (kind === "file" && ["read", "huge"].includes(sieve.file(at, size) ?? "")) ready.push(at);
    }
    beside = [];
  };
  let [seen, folder] = [0, ""];
  const enters = async (at: string): Promise<boolean> => {
    await settle();
    return entered.has(at);
  };
  for await (const entry of tree.entries(signal, enters)) {
    if (folderOf(entry.path) !== folder) {
      await settle();
      yield* ready.splice(0);
      folder = folderOf(entry.path);
    }
    beside.push(entry);
    if ((seen += 1) >= MAX_SEEN) break;
  }
  await settle();
  yield* ready;
}

const isGit = (file: string): boolean => path.posix.basename(file) === ".gitignore";

/** Whether the name can be written in a line as it is. */
const isPlain = (file: string): boolean =>
  file.length <= MAX_PATH && file.isWellFormed() && !file.includes('"') && visibleWhole(file) === file;

type Hidden = (file: string, isFolder?: boolean) => boolean;

async function hiddenIn(host: Places, workspace: string): Promise<Hidden> {
  const rules = await ignoreRulesOf(host, workspace);
  if (rules === undefined) return () => false;
  const real = await realpath(workspace);
  return (file, isFolder) =>
    isIgnored(rules, file, isFolder) ||
    (rules.above ?? []).some((list) =>
      isIgnored(list.rules, path.relative(list.folder, path.join(real, file)), isFolder),
    );
}

const MENTION = /(?<!\S)@(?:"([^"\n]{1,300})"|([^\s"]{1,300}))/g;

/** Existing files of the workspace that a text names with `@`, in the order of the text. */
export async function filesNamedIn(
  host: Places,
  workspace: string,
  text: string,
): Promise<readonly string[]> {
  const named = new Set<string>();
  for (const [, quoted, bare = ""] of text.matchAll(MENTION)) {
    if (named.size >= MAX_NAMED) break;
    const found = [quoted ?? bare, bare.replace(/[.,;:!?)\]]+$/, "")]
      .map((each) => path.posix.normalize(each).replace(/\/$/, ""))
      .find((each) => isThere(workspace, each));
    if (found !== undefined) named.add(found);
  }
  if (named.size === 0) return [];
  const hidden = await hiddenIn(host, workspace).catch(() => () => true);
  return [...named].filter((each) => !hidden(each));
}

/** Whether it is a file or a folder below the workspace, with no link on the way. */
function isThere(workspace: string, file: string): boolean {
  if (!isPlain(file) || path.posix.isAbsolute(file)) return false;
  const names = file.split("/");
  if (names.some((name) => name === "" || name === "." || name === "..")) return false;
  try {
    return names.every((_, at) => {
      const stats = lstatSync(path.join(workspace, ...names.slice(0, at + 1)));
      return stats.isDirectory() || (at === names.length - 1 && stats.isFile());
    });
  } catch {
    return false;
  }
}
