import type { Found, Use, Reader } from "./program-model.ts";

const SUFFIX = /\.(?:gz|z|Z|tgz|taz|bz2?|tbz2?|xz|lzma|txz|tlz|zst|tzst|lz4|br)$/;
const TO_STDOUT: ReadonlySet<string> = new Set(["-c", "--stdout", "--to-stdout"]);
const SHOWS: ReadonlySet<string> = new Set(["-t", "-l", "--test", "--list"]);
const CHANGES: ReadonlySet<string> = new Set(["-d", "-z", "--decompress", "--uncompress", "--compress"]);
const OWN = new Set(["-S", "--suffix"]);

/** `.envrc.gz` gives `.envrc`, which is written under that name. */
function unpackedEffects(use: Use): readonly Found[] {
  const names = use.options.map(({ name }) => name);
  if (names.some((name) => TO_STDOUT.has(name))) return [];
  const shows = names.findLastIndex((name) => SHOWS.has(name));
  const changes = names.findLastIndex((name) => CHANGES.has(name));
  if (shows > changes) return [];
  // Of several modes the last one counts, or the one that the program prefers.
  const replaced = shows === -1 ? [] : use.operands;
  const own = use.options.findLast(({ name }) => OWN.has(name))?.value?.value ?? "";
  const bare = use.operands.flatMap((arg): readonly Found[] => {
    const { value, span } = arg;
    const isOwn = own !== "" && value.endsWith(own) && value.length > own.length;
    const name = isOwn ? value.slice(0, -own.length) : value.replace(SUFFIX, "");
    return name === value ? [] : [{ kind: "write", path: use.place({ ...arg, value: name }), span }];
  });
  return [
    ...replaced.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span })),
    ...bare,
  ];
}

/** What rows ask of this file, by name. */
export const COMPRESS_READERS: Readonly<Record<string, Reader>> = {
  "a file beside": unpackedEffects,
};
