/** Names that look like others: invisible characters, changes of text direction, letters of other scripts. */

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Variation_Selector}\u115F\u1160\u3164\uFFA0]/gu;

/** Letters that most fonts draw like an ASCII character; those that Unicode itself equates (NFKC) are not listed. */
const DRAWN: Readonly<Record<string, string>> = {
  a: "аαɑ",
  b: "Ьƅ",
  c: "сϲᴄ",
  d: "ԁ",
  e: "еҽ",
  g: "ɡց",
  h: "һհ",
  i: "іιı",
  j: "јϳ",
  k: "κк",
  l: "ӏǀ",
  n: "ոп",
  o: "оοօᴏ",
  p: "рρ",
  q: "ԛզ",
  r: "гᴦ",
  s: "ѕꜱ",
  t: "τт",
  u: "υսᴜ",
  v: "νѵᴠ",
  w: "ԝᴡ",
  x: "хχ",
  y: "уүγ",
  z: "ᴢ",
  "-": "‐‑‒–—−",
  "/": "⁄∕",
  ".": "․",
};
const PLAIN: ReadonlyMap<string, string> = new Map(
  Object.entries(DRAWN).flatMap(([plain, drawn]) => Array.from(drawn, (each) => [each, plain] as const)),
);

/** The ASCII character that a character looks like, if it is not ASCII itself. */
const plainOf = (sign: string): string | undefined => {
  const same = sign.normalize("NFKC");
  return PLAIN.get(sign) ?? (same !== sign && /^[!-~]$/.test(same) ? same : undefined);
};

/** Names with the same skeleton look the same, or nearly so, and may be the same file on another system. */
export const skeletonOf = (name: string): string =>
  Array.from(
    name.replaceAll(HIDDEN, "").normalize("NFC").toLowerCase(),
    (sign) => plainOf(sign) ?? sign,
  ).join("");

/** Why a person may misread a name; undefined when nobody would. */
export function deceives(name: string): string | undefined {
  const hidden = [...new Set(name.match(HIDDEN))];
  if (hidden.length > 0) return `it has invisible characters: ${hidden.map(codeOf).join(", ")}`;
  const odd = [...new Set(name.normalize("NFC"))].filter((sign) => plainOf(sign.toLowerCase()) !== undefined);
  // A word in another script also has letters that look like no ASCII letter.
  const looks = skeletonOf(name);
  if (odd.length === 0 || !/^[ -~]*$/.test(looks)) return undefined;
  return `it looks like ${JSON.stringify(looks)}, with ${odd.map(codeOf).join(", ")} in it`;
}

const codeOf = (sign: string): string =>
  `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
