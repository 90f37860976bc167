import type { SecretBinding } from "../network.ts";

/*
 * Masks the values of secrets in the output of a box. A mask has the length of the value, so that offsets, sizes and
 * byte counts stay right. Values in other common encodings are found, too.
 */

/** Shorter values occur everywhere: masking them would mask ordinary words. */
export const MIN_SECRET_LENGTH = 8;

interface Form {
  readonly bytes: Buffer;
  readonly mask: Buffer;
}

type SecretMask = (bytes: Uint8Array, edges?: Edges) => Uint8Array;

/** Where the bytes were cut off: a value may continue there. */
interface Edges {
  readonly before?: boolean;
  readonly behind?: boolean;
}

export interface SecretMasks {
  readonly mask: SecretMask;
  /** For bytes that come in pieces: a possible beginning of a value is held back until the next piece. */
  readonly stream: () => { readonly take: (bytes: Uint8Array) => Uint8Array; readonly end: () => Uint8Array };
}

export function secretMasks(secrets: readonly Pick<SecretBinding, "name" | "value">[]): SecretMasks {
  const forms = secrets.flatMap(formsOf).toSorted((a, b) => a.bytes.length - b.bytes.length);
  const mask: SecretMask = (bytes, edges = {}) => masked(bytes, forms, edges);
  return {
    mask,
    stream: () => {
      let held: Buffer = Buffer.alloc(0);
      return {
        take: (bytes) => {
          const all = Buffer.concat([held, bytes]);
          const cut = beforeMatches(all, all.length - openEnd(all, forms), forms);
          held = all.subarray(cut);
          return mask(all.subarray(0, cut));
        },
        end: () => {
          const rest = mask(held);
          held = Buffer.alloc(0);
          return rest;
        },
      };
    },
  };
}

function formsOf({ name, value }: Pick<SecretBinding, "name" | "value">): readonly Form[] {
  const spellings = [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    Buffer.from(value).toString("base64").replace(/=+$/, ""),
    Buffer.from(value).toString("base64url"),
  ];
  return [...new Set(spellings)].map((text) => {
    const bytes = Buffer.from(text);
    const shown = Buffer.from(`[secret: ${name}]`);
    return {
      bytes,
      mask: Buffer.alloc(bytes.length, "*").fill(shown, 0, Math.min(shown.length, bytes.length)),
    };
  });
}

function masked(bytes: Uint8Array, forms: readonly Form[], { before, behind }: Edges): Uint8Array {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let clean: Buffer | undefined;
  for (const { bytes: form, mask } of forms)
    for (let at = view.indexOf(form); at !== -1; at = view.indexOf(form, at + form.length)) {
      clean ??= Buffer.from(view);
      mask.copy(clean, at);
    }
  const head = before === true ? telling(openStart(view, forms)) : 0;
  const tail = behind === true ? telling(openEnd(view, forms)) : 0;
  if (head + tail > 0) {
    clean ??= Buffer.from(view);
    clean.fill("*", 0, head).fill("*", view.length - tail);
  }
  return clean ?? bytes;
}

/** The position at or before `cut` that splits no complete value. */
function beforeMatches(view: Buffer, cut: number, forms: readonly Form[]): number {
  for (const { bytes } of forms)
    for (let at = view.indexOf(bytes); at !== -1 && at < cut; at = view.indexOf(bytes, at + 1))
      if (at + bytes.length > cut) return beforeMatches(view, at, forms);
  return cut;
}

/** Fewer bytes of a value reveal nothing, and other text often ends like that. */
const telling = (bytes: number): number => (bytes >= 4 ? bytes : 0);

/** Bytes at the end that are the beginning of a form. */
function openEnd(view: Buffer, forms: readonly Form[]): number {
  let most = 0;
  for (const { bytes } of forms)
    for (let length = Math.min(bytes.length - 1, view.length); length > most; length -= 1)
      if (view.subarray(view.length - length).equals(bytes.subarray(0, length))) most = length;
  return most;
}

/** Bytes at the start that are the end of a form. */
function openStart(view: Buffer, forms: readonly Form[]): number {
  let most = 0;
  for (const { bytes } of forms)
    for (let length = Math.min(bytes.length - 1, view.length); length > most; length -= 1)
      if (view.subarray(0, length).equals(bytes.subarray(bytes.length - length))) most = length;
  return most;
}
