import { randomBytes } from "node:crypto";
import { chmod, link, lstat, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import type { Container } from "dockerode";
import { errorCode, HarnessError, notStored } from "../../core/errors.ts";
import { type Engine, engineFailure, isMissing } from "../engine.ts";
import type { BoxPlan } from "../container-spec.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { makeFolder } from "../../platform/folders.ts";
import { BOX_HOME } from "../../core/ports.ts";
import { untar } from "../../core/tar-archive.ts";
import { ACCOUNT_REPOSITORY, shortHash } from "../image-inputs.ts";
import { tarOf } from "../../boxes/workspace/workspace-archive.ts";

/**
 * The lists of users and groups that a box sees, its own user first: a name, the home folder that HOME names, a shell.
 * They lie in `accounts` of a folder for mounts, one pair for each image, user and group; a pair is never changed,
 * because running boxes have it mounted. For an engine that cannot mount them, an image has them.
 */

type Account = NonNullable<BoxPlan["account"]>;

/** A new number for a new form of the lists. */
const FORMAT_VERSION = 1;

interface AccountRequest {
  readonly engine: Engine;
  /** The folder for files that are mounted into boxes. */
  readonly folder: string;
  /** The image's id, and whether its entries are known because the image is ours. */
  readonly image: string;
  readonly own: boolean;
  readonly user: BoxPlan["user"];
  /** Labels of the container through which the image is read or made, so that a leftover container is found again. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Host files to mount, or an image to use instead, with the lists in it. */
type AccountSource =
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
    return notStored("the user and group lists of a box", folder)(thrown);
  };

/** Undefined for an image that has a link in place of a list. */
async function boundAccount(wanted: AccountRequest): Promise<Account | undefined> {
  const { engine, image, own, user, labels } = wanted;
  const folder = path.join(wanted.folder, "accounts");
  makeFolder(folder);
  // The inode number distinguishes this folder from the same path on another machine.
  const { ino } = await stat(folder);
  const of = own ? "own" : image.replace(/^sha256:/, "").slice(0, 16);
  const base = path.join(folder, [FORMAT_VERSION, of, user.uid, user.gid, ino.toString(36)].join("-"));
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

/** The texts of /etc/passwd and /etc/group. */
interface Lists {
  readonly passwd: string;
  readonly group: string;
}

/** Entries of any Debian, as far as files in our image belong to them. */
const OWN_LISTS: Lists = {
  passwd: `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`,
  group: `root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
mail:x:8:
www-data:x:33:
shadow:x:42:
utmp:x:43:
staff:x:50:
users:x:100:
nogroup:x:65534:
`,
};

/** Pure. The box's user comes first, because a lookup by number finds the first entry; no other entry has its name. */
export function accountTexts({ passwd, group }: Lists, { uid, gid }: BoxPlan["user"]): Lists {
  const [user, own] = [uid, gid].map((id) => (id === 0 ? "root" : "box"));
  return {
    passwd: [
      `${user}:x:${uid}:${gid}:${user}:${BOX_HOME}:${shellIn(passwd)}`,
      ...otherLines(passwd, user),
    ].join("\n"),
    group: [`${own}:x:${gid}:`, ...otherLines(group, own)].join("\n"),
  };
}

/** Adds an empty line, so that the last line ends with a line break. */
const otherLines = (text: string, name = ""): readonly string[] => [
  ...text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith(`${name}:`)),
  "",
];

/** Root's shell in the image: an image need not have bash. */
function shellIn(passwd: string): string {
  const root = passwd.split("\n").find((line) => /^[^:]*:[^:]*:0:/.test(line));
  const shell = root?.split(":")[6]?.trim() ?? "";
  return /^\/[\w./-]+$/.test(shell) && !/\/(?:nologin|false)$/.test(shell) ? shell : "/bin/sh";
}

const MAX_COUNT = 2 ** 20;
const MAX_LINKS = 8;

interface FoundLists extends Lists {
  /** Whether both files are where they belong: a mount over a link would end up somewhere else. */
  readonly plain: boolean;
}

/** Reads the lists through a container that never starts. A list that is missing, or no file in the end, is empty. */
async function listsIn(container: Container): Promise<FoundLists> {
  try {
    const [passwd, group] = [await textAt(container, "/etc/passwd"), await textAt(container, "/etc/group")];
    return { passwd: passwd.text, group: group.text, plain: passwd.plain && group.plain };
  } catch (thrown) {
    throw engineFailure("looking at the image's users", thrown);
  }
}

async function textAt(
  container: Container,
  file: string,
  links = 0,
): Promise<{ readonly text: string; readonly plain: boolean }> {
  const archive = await container.getArchive({ path: file }).catch((thrown: unknown) => {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  });
  if (archive === undefined) return { text: "", plain: links === 0 };
  const parts: Buffer[] = [];
  let size = 0;
  for await (const each of untar(archive as AsyncIterable<Buffer>)) {
    if (Buffer.isBuffer(each)) {
      size += each.length;
      if (size > MAX_COUNT) return { text: "", plain: false };
      parts.push(each);
    } else if (each.type === "link" && links < MAX_LINKS) {
      const target = path.posix.resolve(path.posix.dirname(file), each.target.toString("utf8"));
      return { text: (await textAt(container, target, links + 1)).text, plain: false };
    } else if (each.type !== "file") return { text: "", plain: false };
  }
  return { text: Buffer.concat(parts).toString("utf8"), plain: links === 0 };
}

/**
 * The id of an image that is the given one with the box's user in its lists: for an engine that cannot read a file of
 * this machine. Made once for each image, user and group, from a container that never starts; it is removed with our
 * other images.
 */
export async function imageWithAccount(
  engine: Engine,
  wanted: Pick<AccountRequest, "image" | "user" | "labels">,
): Promise<string> {
  const { image, user, labels } = wanted;
  const of = shortHash(JSON.stringify([FORMAT_VERSION, image, user.uid, user.gid]));
  try {
    const there = await idOf(engine, of);
    if (there !== undefined) return there;
    await using unstarted = await unstartedContainer(engine, { image, labels });
    const { container } = unstarted;
    const { passwd, group } = accountTexts(await listsIn(container), user);
    const archive = tarOf({ "etc/passwd": passwd, "etc/group": group });
    await container.putArchive(Readable.from([archive], { objectMode: false }), { path: "/" });
    const { Id } = (await container.commit({ repo: ACCOUNT_REPOSITORY, tag: of })) as { readonly Id: string };
    // If two were made at the same time, the later one has the name.
    return (await idOf(engine, of)) ?? Id;
  } catch (thrown) {
    throw engineFailure("giving the box's user a name", thrown);
  }
}

async function idOf({ api }: Engine, tag: string): Promise<string | undefined> {
  try {
    return (await api.getImage(`${ACCOUNT_REPOSITORY}:${tag}`).inspect()).Id;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}
