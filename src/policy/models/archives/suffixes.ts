import type { Found, Use } from "../model.ts";
import { given } from "../plain.ts";

const SUFFIX = /\.(?:gz|z|Z|tgz|taz|bz2?|tbz2?|xz|lzma|txz|tlz|zst|tzst|lz4|br)$/;
const SHOWS = ["-c", "-t", "-l", "--stdout", "--to-stdout", "--test", "--list"];
const OWN = new Set(["-S", "--suffix"]);

/** `.envrc.gz` gives `.envrc`, which is written under that name. */
export function unpackedEffects(use: Use): readonly Found[] {
  if (given(use, ...SHOWS)) return [];
  const own = use.options.findLast(({ name }) => OWN.has(name))?.value?.value ?? "";
  return use.operands.flatMap((arg): readonly Found[] => {
    const { value, span } = arg;
    const isOwn = own !== "" && value.endsWith(own) && value.length > own.length;
    const bare = isOwn ? value.slice(0, -own.length) : value.replace(SUFFIX, "");
    return bare === value ? [] : [{ kind: "write", path: use.place({ ...arg, value: bare }), span }];
  });
}
