import { randomBytes } from "node:crypto";
import { link, lstat, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Container } from "dockerode";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";
import { untar } from "../../core/untar.ts";
import type { Engine } from "../engine.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";
import type { BoxPlan } from "../container-spec.ts";
import { unstartedContainer } from "../unstarted-container.ts";

/**
 * The lists of users and groups that a box sees, with its own user before all others: a name, the home that HOME names,
 * a shell. They lie in `accounts` of a folder for mounts, one pair for each image, user and group; a pair is never changed, since boxes
 * that run are mounted over it.
 */
export type Account = NonNullable<BoxPlan["account"]>;

/** Another text, another number. */
const FORM = 1;

export interface AccountWanted {
  readonly engine: Engine;
  /** Where what is mounted lies. */
  readonly folder: string;
  /** An image of others, whose own entries stay; null for ours. */
  readonly image: string | null;
  readonly user: BoxPlan["user"];
  /** Of the container that the image's entries are read through, so that it is found again. */
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Where files lie that are mounted into boxes of `uid`: the box's table of mounts names it, so it tells nothing of the
 * host. Where no such folder can be had it is the state folder.
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
    // The state folder serves, too.
  }
  return stateDir;
}

/** Undefined where the box is to keep what its image has: on another machine, or where the image has a link there. */
export async function accountFor(wanted: AccountWanted): Promise<Account | undefined> {
  return account(wanted).catch((thrown: unknown) => {
    if (thrown instanceof HarnessError || errorCode(thrown) === undefined) throw thrown;
    const message = `the names of a box's user cannot be kept in ${wanted.folder}: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, "make that folder writable, with room in it", thrown);
  });
}

async function account(wanted: AccountWanted): Promise<Account | undefined> {
  const { engine, image, user } = wanted;
  if (!engine.endpoint.host.startsWith("unix:")) return undefined;
  const folder = path.join(wanted.folder, "accounts");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // The same path on another machine is not taken for it.
  const { ino } = await stat(folder);
  const of = image === null ? "own" : image.replace(/^sha256:/, "").slice(0, 16);
  const base = path.join(folder, [FORM, of, user.uid, user.gid, ino.toString(36)].join("-"));
  const lists = { passwd: `${base}.passwd`, group: `${base}.group` };
  const there = await Promise.all([lists.passwd, lists.group].map(sizeOf));
  if (there.every((size) => size !== undefined)) return there.includes(0) ? undefined : lists;
  const found = image === null ? OWN : await listsOf(wanted, image);
  const texts = found === undefined ? NONE : accountTexts(found, user);
  await written(lists.passwd, texts.passwd);
  await written(lists.group, texts.group);
  return found === undefined ? undefined : lists;
}

const sizeOf = (file: string): Promise<number | undefined> =>
  lstat(file).then(
    ({ size }) => size,
    () => undefined,
  );

/** Whole or not at all; what another start has written meanwhile stays. */
async function written(file: string, text: string): Promise<void> {
  const aside = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(aside, text, { mode: 0o644, flush: true });
    await link(aside, file).catch(async (thrown: unknown) => {
      if ((await sizeOf(file)) === undefined) throw thrown;
    });
  } finally {
    await rm(aside, { force: true });
  }
}

interface Lists {
  readonly passwd: string;
  readonly group: string;
}

const NONE: Lists = { passwd: "", group: "" };

/** What any Debian has, as far as files in our image belong to it. */
const OWN: Lists = {
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

/** Pure. The first entry of a number is the one that is found by it, and the only one of its name. */
export function accountTexts({ passwd, group }: Lists, { uid, gid }: BoxPlan["user"]): Lists {
  const [user, own] = [uid, gid].map((id) => (id === 0 ? "root" : "box"));
  return {
    passwd: [`${user}:x:${uid}:${gid}:${user}:/home/box:${shellIn(passwd)}`, ...others(passwd, user)].join(
      "\n",
    ),
    group: [`${own}:x:${gid}:`, ...others(group, own)].join("\n"),
  };
}

/** With an empty one at the end, for the last line's own. */
const others = (text: string, name = ""): readonly string[] => [
  ...text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith(`${name}:`)),
  "",
];

/** The one that root has there: an image need not have bash. */
function shellIn(passwd: string): string {
  const root = passwd.split("\n").find((line) => /^[^:]*:[^:]*:0:/.test(line));
  const shell = root?.split(":")[6]?.trim() ?? "";
  return /^\/[\w./-]+$/.test(shell) && !/\/(?:nologin|false)$/.test(shell) ? shell : "/bin/sh";
}

const MAX_COUNT = 2 ** 20;

/** Read without running anything of the image; undefined for what is no file there. */
async function listsOf({ engine, labels }: AccountWanted, image: string): Promise<Lists | undefined> {
  await using unstarted = await unstartedContainer(engine, { image, labels }).catch((thrown: unknown) => {
    throw engineFailure("looking at the image's users", thrown);
  });
  const { container } = unstarted;
  const [passwd, group] = [await textIn(container, "passwd"), await textIn(container, "group")];
  return passwd === undefined || group === undefined ? undefined : { passwd, group };
}

async function textIn(container: Container, name: string): Promise<string | undefined> {
  const archive = await container.getArchive({ path: `/etc/${name}` }).catch((thrown: unknown) => {
    if (isMissing(thrown)) return undefined;
    throw engineFailure("looking at the image's users", thrown);
  });
  if (archive === undefined) return "";
  const parts: Buffer[] = [];
  let size = 0;
  for await (const each of untar(archive as AsyncIterable<Buffer>)) {
    if (!Buffer.isBuffer(each)) {
      if (each.type !== "file") return undefined;
      continue;
    }
    size += each.length;
    if (size > MAX_COUNT) return undefined;
    parts.push(each);
  }
  return Buffer.concat(parts).toString("utf8");
}
