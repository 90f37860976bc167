import type { Canary } from "./behaviour.ts";

/** What canaries hold is known again where it turns up: as it is, in base64, in hexadecimal digits. */

/** So many characters in a row come up nowhere by chance. */
const LEAST = 16;

interface Sign {
  readonly canary: Canary;
  readonly texts: readonly Buffer[];
}

/** The random parts: what is the same in each run is shorter, or the head of a web token. */
const marksOf = ({ content = "" }: Canary): readonly string[] =>
  (content.match(/[A-Za-z0-9+/_-]{20,}/g) ?? [])
    .flatMap((run) => (run.startsWith("eyJ") ? [] : run.split(/A{3,}/)))
    .filter((word) => word.length >= MARK && /\d/.test(word) && /[A-Za-z]/.test(word));
const MARK = 20;

/** Base64 depends on where in its threes a text begins; its first and last characters on what stands around it. */
function inBase64(text: string): readonly Buffer[] {
  return [0, 1, 2].map((shift) => {
    const whole = Buffer.from("\0".repeat(shift) + text)
      .toString("base64")
      .replace(/=+$/, "");
    return Buffer.from(whole.slice(shift === 0 ? 0 : 4, -2));
  });
}

function signsOf(canaries: readonly Canary[]): readonly Sign[] {
  return canaries.flatMap((canary) => {
    const marks = marksOf(canary);
    if (marks.length === 0) return [];
    const texts = marks
      .flatMap((mark) => [
        Buffer.from(mark),
        ...inBase64(mark),
        Buffer.from(Buffer.from(mark).toString("hex")),
      ])
      .filter(({ length }) => length >= LEAST);
    return [{ canary, texts }];
  });
}

/** The canaries of which a part stands in one of these. */
export function canariesIn(contents: readonly Uint8Array[], canaries: readonly Canary[]): readonly Canary[] {
  const found = contents.map((content) =>
    Buffer.from(content.buffer, content.byteOffset, content.byteLength),
  );
  if (found.every(({ length }) => length < LEAST)) return [];
  return signsOf(canaries)
    .filter(({ texts }) => texts.some((text) => found.some((content) => content.includes(text))))
    .map(({ canary }) => canary);
}
