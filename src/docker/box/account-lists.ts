import path from "node:path";
import type { Container } from "dockerode";
import { BOX_HOME } from "../../core/ports.ts";
import { untar } from "../../core/text/untar.ts";
import type { BoxPlan } from "../container-spec.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";

/** The texts of /etc/passwd and /etc/group. */
export interface Lists {
  readonly passwd: string;
  readonly group: string;
}

/** Entries of any Debian, as far as files in our image belong to them. */
export const OWN_LISTS: Lists = {
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

export interface FoundLists extends Lists {
  /** Whether both files are where they belong: a mount over a link would end up somewhere else. */
  readonly plain: boolean;
}

/** Reads the lists through a container that never starts. A list that is missing, or no file in the end, is empty. */
export async function listsIn(container: Container): Promise<FoundLists> {
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
