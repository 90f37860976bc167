import type { Finding, Weight } from "../core/behaviour.ts";
import { formatSize } from "../core/text/bounds.ts";
import { visibleLine } from "../core/text/visible.ts";

interface Rule {
  readonly weight: Weight;
  /** The words for it in docs/untrusted.md. */
  readonly words: string;
}

/** Rules on archives and clones, decided while they are unpacked. */
export const ARCHIVE_RULES = {
  "unpack.bomb": {
    weight: "hostile",
    words: "it unpacks to many times its own size; nothing in it was run",
  },
  "unpack.large": { weight: "noisy", words: "it is too large to unpack in full; nothing in it was run" },
  "unpack.outside": { weight: "hostile", words: "an entry leads outside the folder that it is unpacked in" },
  "unpack.device": { weight: "hostile", words: "an entry is a device or a pipe" },
  "unpack.rights": { weight: "hostile", words: "an entry would run with the rights of its owner or group" },
  "unpack.twice": {
    weight: "noisy",
    words: "two entries have the same name: programs disagree on which one counts",
  },
  "unpack.odd": { weight: "noisy", words: "an entry that cannot be unpacked" },
  "unpack.elsewhere": {
    weight: "noisy",
    words: "the clone was redirected to another host, which was not contacted",
  },
  "unpack.broken": {
    weight: "noisy",
    words: "it is truncated or damaged; only what came before was examined",
  },
} as const satisfies Readonly<Record<string, Rule>>;

type ArchiveRule = keyof typeof ARCHIVE_RULES;

/** What a box reports after it unpacked an archive. */
export interface Unpacked {
  readonly entries: number;
  readonly bytes: number;
  /** Bytes of the archive itself. */
  readonly packed: number;
  /** Why the archive was not unpacked to its end. */
  readonly stopped: "bytes" | "entries" | "time" | "broken" | null;
  readonly left_out: readonly (readonly [name: string, why: string])[];
}

const LEFT_OUT: Readonly<Record<string, readonly [rule: ArchiveRule, words: string]>> = {
  outside: ["unpack.outside", "leads outside the folder that it is unpacked in"],
  link: ["unpack.outside", "would be written through a link in the archive"],
  nul: ["unpack.outside", "has a NUL in its name"],
  device: ["unpack.device", "is a device or a pipe"],
  rights: ["unpack.rights", "would run with the rights of its owner or group"],
  twice: ["unpack.twice", "occurs twice: programs disagree on which one counts"],
  deep: ["unpack.odd", "is nested too deep for many programs"],
  name: ["unpack.odd", "has a name that cannot be created here"],
  unreadable: ["unpack.odd", "cannot be unpacked"],
};

/** Only archives made for the purpose unpack to this many times their own size. */
const BOMB = 100;

export function archiveFindings(unpacked: Unpacked): readonly Finding[] {
  const ending = endingOf(unpacked);
  const leftOut = unpacked.left_out.map(([name, why]) => {
    const [rule, words] = LEFT_OUT[why] ?? ["unpack.odd", why];
    return found(rule, `${visibleLine(name)} ${words}`, visibleLine(name));
  });
  return ending === undefined ? leftOut : [ending, ...leftOut];
}

/** Whether all contents of the archive were unpacked. */
export const isWhole = ({ stopped }: Unpacked): boolean => stopped === null || stopped === "broken";

function endingOf({ stopped, bytes, packed, entries }: Unpacked): Finding | undefined {
  if (stopped === null) return undefined;
  if (stopped === "broken") return found("unpack.broken", ARCHIVE_RULES["unpack.broken"].words);
  const from = `from ${formatSize(packed)}`;
  if (stopped === "entries") return found("unpack.bomb", `contains more than ${entries - 1} entries`);
  if (stopped === "time") return found("unpack.bomb", "could not be unpacked in the time allowed");
  const rule = bytes > BOMB * packed ? "unpack.bomb" : "unpack.large";
  return found(rule, `unpacks to more than ${formatSize(bytes)} ${from}`);
}

/** One finding for each host that a clone was led to. */
export const cloneFindings = (hosts: readonly string[]): readonly Finding[] =>
  [...new Set(hosts)].map((host) =>
    found("unpack.elsewhere", `the clone was redirected to ${visibleLine(host)}, which was not contacted`),
  );

const found = (rule: ArchiveRule, text: string, path?: string): Finding => ({
  rule,
  weight: ARCHIVE_RULES[rule].weight,
  text,
  ...(path === undefined ? {} : { path }),
});
