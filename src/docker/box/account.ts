import { randomBytes } from "node:crypto";
import { chmod, link, lstat, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Engine } from "../engine.ts";
import { engineFailure } from "../engine-failure.ts";
import type { BoxPlan } from "../container-spec.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { imageWithAccount } from "./account-image.ts";
import { accountTexts, type FoundLists, type Lists, listsIn, OWN_LISTS } from "./account-lists.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * The lists of users and groups that a box sees, its own user first: a name, the home folder that HOME names, a shell.
 * They lie in `accounts` of a folder for mounts, one pair for each image, user and group; a pair is never changed,
 * because running boxes have it mounted.
 */
type Account = NonNullable<BoxPlan["account"]>;

/** A new number for a new form of the text. */
const FORM = 1;

export interface AccountRequest {
  readonly engine: Engine;
  /** The folder for files that are mounted into boxes. */
  readonly folder: string;
  /** The image's id, and whether its entries are known because the image is ours. */
  readonly image: string;
  readonly own: boolean;
  readonly user: BoxPlan["user"];
  /** Labels of the container that the image's entries are read through, so that a leftover container is found again. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Host files to mount, or an image to use instead, with the lists in it. */
export type AccountSource =
  | { readonly account: Account; readonly image?: never }
  | { readonly account?: never; readonly image: string };

/**
 * The folder for files that are mounted into boxes of `uid`. The box's mount table shows its path, so the path must
 * reveal nothing of the host. If there can be no such folder, the state folder is used.
 */
export async function folderForMounts(uid: number, stateDir: string): Promise<string> {
  const runtime =
    process.env["XDG_RUNTIME_DIR"] ?? (uid === 0 && process.platform === "linux" ? "/run" : tmpdir());
  const folder = path.join(runtime, runtime === tmpdir() ? `harness-${uid}` : "harness");
  try {
    await mkdir(folder, { mode: 0o700 }).catch((thrown: unknown) => {
      if (errorCode(thrown) !== "EEXIST") throw thrown;
    });
    const stats = await lstat(folder);
    if (stats.isDirectory() && stats.uid === uid && (stats.mode & 0o022) === 0) return folder;
  } catch {
    // The state folder will do.
  }
  return stateDir;
}

/** An engine on another machine reads no files of this one, and a mount over a link would end up somewhere else. */
export async function accountFor(wanted: AccountRequest): Promise<AccountSource> {
  const { engine, folder, user, image, labels } = wanted;
  const local = engine.endpoint.host.startsWith("unix:");
  const account = local ? await boundAccount(wanted).catch(unwritable(folder)) : undefined;
  return account === undefined
    ? { image: await imageWithAccount(engine, { image, user, labels }) }
    : { account };
}

const unwritable =
  (folder: string) =>
  (thrown: unknown): never => {
    if (thrown instanceof HarnessError || errorCode(thrown) === undefined) throw thrown;
    const message = `the user and group lists of a box cannot be stored in ${folder}: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      "make that folder writable, and check its free space",
      thrown,
    );
  };

/** Undefined for an image that has a link in place of a list. */
async function boundAccount(wanted: AccountRequest): Promise<Account | undefined> {
  const { engine, image, own, user, labels } = wanted;
  const folder = path.join(wanted.folder, "accounts");
  makeFolder(folder);
  // The inode number distinguishes this folder from the same path on another machine.
  const { ino } = await stat(folder);
  const of = own ? "own" : image.replace(/^sha256:/, "").slice(0, 16);
  const base = path.join(folder, [FORM, of, user.uid, user.gid, ino.toString(36)].join("-"));
  const lists = { passwd: `${base}.passwd`, group: `${base}.group` };
  const there = await Promise.all([lists.passwd, lists.group].map(sizeOf));
  if (there.every((size) => size !== undefined)) return there.includes(0) ? undefined : lists;
  const found = own ? { ...OWN_LISTS, plain: true } : await listsOf(engine, image, labels);
  const texts = found.plain ? accountTexts(found, user) : NO_LISTS;
  await writeOnce(lists.passwd, texts.passwd);
  await writeOnce(lists.group, texts.group);
  return found.plain ? lists : undefined;
}

const sizeOf = (file: string): Promise<number | undefined> =>
  lstat(file).then(
    ({ size }) => size,
    () => undefined,
  );

/** Writes the file whole or not at all; what another start has written meanwhile stays. */
async function writeOnce(file: string, text: string): Promise<void> {
  const aside = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(aside, text, { flush: true });
    // The box's user must read the file, whatever the umask is.
    await chmod(aside, 0o644);
    await link(aside, file).catch(async (thrown: unknown) => {
      if ((await sizeOf(file)) === undefined) throw thrown;
    });
  } finally {
    await rm(aside, { force: true });
  }
}

const NO_LISTS: Lists = { passwd: "", group: "" };

async function listsOf(engine: Engine, image: string, labels: AccountRequest["labels"]): Promise<FoundLists> {
  await using unstarted = await unstartedContainer(engine, { image, labels }).catch((thrown: unknown) => {
    throw engineFailure("looking at the image's users", thrown);
  });
  return await listsIn(unstarted.container);
}
