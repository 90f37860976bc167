/** Masks secrets in text: those that are recognisable by their form, and known values in the output of a box. */
import type { SecretBinding } from "./network.ts";

/**
 * Masks secrets that are recognisable by their form. Other text stays, including hashes, ids and images. Idempotent;
 * linear in the length of any text.
 */
export function maskSecrets(text: string): string {
  return text
    .replaceAll(PRIVATE_KEY, (block: string) => (KEY_LINE.test(block) ? mask("private key") : block))
    .replaceAll(TOKENS, tokenMask)
    .replaceAll(AUTHORIZATION, (_, before: string) => before + mask("authorization"))
    .replaceAll(IN_URL, urlMask)
    .replaceAll(AWS_SECRET, (_, before: string) => before + mask("aws key"))
    .replaceAll(AZURE_KEY, (_, before: string) => before + mask("azure key"))
    .replaceAll(ASSIGNED, assignedMask);
}

const mask = (kind: string): string => `[secret: ${kind}]`;

/** Whether secrets may have been masked in this text: writing it back would lose them. */
export const holdsMask = (text: string): boolean => text.includes("[secret: ");

/** The body may follow line numbers, be quoted or be one line; it ends at the first character that no key contains. */
const PRIVATE_KEY =
  /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\w+/=\s:,.|\\→]|-(?!-))*(?:-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?/g;
const KEY_LINE = /[A-Za-z0-9+/]{40}/;

/**
 * Keys with a known prefix: name → pattern. A row has no group, and nothing follows an unbounded repetition, so that
 * matching stays linear.
 */
const TOKEN_FORMS: readonly (readonly [kind: string, form: string])[] = [
  ["github token", "gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}"],
  ["gitlab token", "gl(?:pat|dt|rt|ptt|soat|ft|cbt|imt|agent|oas)-[A-Za-z0-9_.-]{20,}"],
  ["aws key id", "(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"],
  ["slack token", "xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\\d-[A-Za-z0-9-]{20,}"],
  [
    "slack webhook",
    "https://hooks\\.slack\\.com/services/T[A-Za-z0-9_]{6,20}/B[A-Za-z0-9_]{6,20}/[A-Za-z0-9_]{16,}",
  ],
  [
    "google key",
    "AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{28,}|ya29\\.[A-Za-z0-9_-]{20,}",
  ],
  ["anthropic key", "sk-ant-[A-Za-z0-9_-]{20,}"],
  ["openai key", "sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}"],
  ["openrouter key", "sk-or-v\\d-[0-9a-f]{48,}"],
  ["groq key", "gsk_[A-Za-z0-9]{40,}"],
  ["npm token", "npm_[A-Za-z0-9]{36,}"],
  ["pypi token", "pypi-AgE[A-Za-z0-9_-]{50,}"],
  ["stripe key", "[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,}"],
  ["huggingface token", "hf_[A-Za-z0-9]{30,}"],
  ["sendgrid key", "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}"],
  ["twilio key", "SK[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["mailgun key", "key-[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["digitalocean token", "do[opr]_v1_[0-9a-f]{64}"],
  ["shopify token", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"],
  ["databricks token", "dapi[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["docker token", "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"],
  ["vault token", "hv[sbr]\\.[A-Za-z0-9_-]{24,}"],
  ["telegram token", "\\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"],
  ["age key", "AGE-SECRET-KEY-1[A-Z0-9]{58}"],
  ["json web token", "eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}"],
];

/** At the start of a word, or after an escaped line end of JSON. */
const TOKENS = new RegExp(
  `(?:(?<![A-Za-z0-9_-])|(?<=\\\\[nrt]))(?:${TOKEN_FORMS.map(([, form]) => `(${form})`).join("|")})`,
  "g",
);

function tokenMask(_: string, ...groups: readonly unknown[]): string {
  const row = groups.findIndex((group) => group !== undefined);
  return mask(TOKEN_FORMS[row]?.[0] ?? "token");
}

const AUTHORIZATION =
  /(\bauthorization["']?\s{0,3}[:=]\s{0,3}["']?(?:bearer|basic|token)\s{1,3})[A-Za-z0-9._~+/=-]{8,}/gi;

const IN_URL = /(:\/\/[^\s/:@"'<>]{0,100}:)([^\s/@"'<>]{1,200})@/g;

function urlMask(whole: string, before: string, password: string): string {
  const name = before.slice(3, -1);
  return password === name || isPlaceholder(password) ? whole : `${before}${mask("password")}@`;
}

const AWS_SECRET =
  /(secret_?access_?key["']?\s{0,3}(?:=>|[:=])\s{0,3}["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/gi;
const AZURE_KEY = /(\b(?:AccountKey|SharedAccessKey)=)[A-Za-z0-9+/]{40,}={0,2}/g;

/** The value ends where a string would in common languages; what precedes the word in the name does not matter. */
const ASSIGNED =
  /((?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|auth[_-]?key)["']?\s{0,3}(?:=>|:=|[:=])\s{0,3}["'`]?)([^\s"'`,;&=()[\]{}<>]{16,512}={0,2})([([{<]?)/gi;

function assignedMask(
  whole: string,
  before: string,
  value: string,
  ...[opened, at, text]: readonly [opened: string, at: number, text: string]
): string {
  const is = opened === "" && isRandom(value) && !(value.startsWith("/") && isFolder(before, at, text));
  return is ? before + mask("password or token") : whole;
}

/** The shell's own variables PWD and OLDPWD, which every listing of an environment shows. */
const isFolder = (before: string, at: number, text: string): boolean =>
  /^PWD=["'`]?$/.test(before) && /(?:^|[^A-Za-z0-9_])(?:OLD)?$/.test(text.slice(Math.max(0, at - 4), at));

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Looks random: digits among letters, and few repeated characters. */
function isRandom(value: string): boolean {
  if (UUID.test(value) || isPlaceholder(value) || value.includes("://")) return false;
  const digits = value.replaceAll(/\D/g, "").length;
  const letters = value.replaceAll(/[^A-Za-z]/g, "").length;
  return digits >= 2 && letters >= 4 && new Set(value).size >= 8;
}

const isPlaceholder = (value: string): boolean =>
  /^(?:pass(?:word|wd)?|pwd|secret|user(?:name)?|root|admin|postgres|test|example|changeme|x+|\*+|\.+|…)$/i.test(
    value,
  ) || /^(?:\$|%|\*|<|\{|…)|\$\{|\{\{/.test(value);

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
      let pending: Buffer = Buffer.alloc(0);
      return {
        take: (bytes) => {
          const all = Buffer.concat([pending, bytes]);
          const cut = beforeMatches(all, all.length - openEnd(all, forms), forms);
          pending = all.subarray(cut);
          return mask(all.subarray(0, cut));
        },
        end: () => {
          const rest = mask(pending);
          pending = Buffer.alloc(0);
          return rest;
        },
      };
    },
  };
}

function formsOf({ name, value }: Pick<SecretBinding, "name" | "value">): readonly Form[] {
  return spellingsOf(value).map((text) => {
    const bytes = Buffer.from(text);
    const shown = Buffer.from(`[secret: ${name}]`);
    return {
      bytes,
      mask: Buffer.alloc(bytes.length, "*").fill(shown, 0, Math.min(shown.length, bytes.length)),
    };
  });
}

/** How programs write a value: as it is, in addresses and forms, in JSON and HTML, and in base64. */
export function spellingsOf(value: string): readonly string[] {
  const inAddress = encodeURIComponent(value);
  const inJson = JSON.stringify(value).slice(1, -1);
  const strict = escapedBy(inAddress, /[!'()*]/g, (code) => `%${code.toUpperCase()}`);
  const addresses = [inAddress, strict, strict.replaceAll("%2F", "/"), strict.replaceAll("%20", "+")];
  return [
    ...new Set([
      value,
      ...addresses,
      ...addresses.map((text) => text.replaceAll(/%../g, (byte) => byte.toLowerCase())),
      inJson,
      inJson.replaceAll("/", "\\/"),
      // Encoders that also escape what has a meaning in HTML.
      escapedBy(inJson, /[&<>]/g, (code) => `\\u00${code}`),
      escapedBy(inJson, /[&<>=']/g, (code) => `\\u00${code}`),
      escapedBy(value, /[&<>"'+`\\]/g, (code, text) =>
        text === "\\" ? "\\\\" : `\\u00${code.toUpperCase()}`,
      ),
      value.replaceAll(/[&<>]/g, (text) => HTML[text] ?? text),
      Buffer.from(value).toString("base64").replace(/=+$/, ""),
      Buffer.from(value).toString("base64url"),
      ...([0, 1, 2] as const).flatMap((before) => insideBase64(value, before)),
    ]),
  ];
}

const HTML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

const escapedBy = (text: string, which: RegExp, write: (code: string, character: string) => string): string =>
  text.replaceAll(which, (character) => write(character.charCodeAt(0).toString(16), character));

/** The characters that depend on the value alone if text is encoded with it, with so many bytes before it, or three more. */
function insideBase64(value: string, before: 0 | 1 | 2): readonly string[] {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
  const [from, to] = [[0, 2, 3][before], Math.floor((bytes.length * 8) / 6)];
  return [bytes.toString("base64").slice(from, to), bytes.toString("base64url").slice(from, to)];
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
