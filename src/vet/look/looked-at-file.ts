import { isAscii, isUtf8 } from "node:buffer";
import type { LookedAtTree, TreeEntry } from "../../core/looked-at.ts";
import { lastName } from "../../core/text/file-paths.ts";

/** A file's bytes, read within bounds, and its text if it is a text. */
export interface LookedAtFile {
  readonly path: string;
  /** The last part of the path, as it is and in lower case. */
  readonly name: string;
  readonly lower: string;
  /** The ending in lower case, with the dot; empty where there is none. */
  readonly ending: string;
  readonly mode: number;
  readonly size: number;
  /** The bytes of a text up to a bound; of any other file, only its beginning. */
  readonly bytes: Buffer;
  readonly text: string | undefined;
  readonly ascii: boolean;
  readonly utf8: boolean;
  /** The bytes are all of the file. */
  readonly whole: boolean;
}

const HEAD = 2 ** 16;
/** Most bytes of one text. */
const MAX_TEXT = 16 * 2 ** 20;
/** Bytes at a file's beginning that decide whether it is a text. */
const PROBE = 2 ** 13;

export async function readLookedAt(tree: LookedAtTree, entry: TreeEntry): Promise<LookedAtFile | undefined> {
  const head = await tree.read(entry.path, HEAD);
  if (head === undefined) return undefined;
  const more = entry.size > head.length && isText(head);
  const bytes = bufferOf(more ? ((await tree.read(entry.path, MAX_TEXT)) ?? head) : head);
  const name = lastName(entry.path);
  const lower = name.toLowerCase();
  return {
    path: entry.path,
    name,
    lower,
    ending: lower.lastIndexOf(".") > 0 ? lower.slice(lower.lastIndexOf(".")) : "",
    mode: entry.mode,
    size: entry.size,
    bytes,
    text: textOf(bytes),
    ascii: isAscii(bytes),
    utf8: isUtf8(bytes) || bytes.length < entry.size,
    whole: bytes.length >= entry.size,
  };
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const isText = (bytes: Uint8Array): boolean =>
  utf16Of(bytes) !== undefined || !bytes.subarray(0, PROBE).includes(0);

function utf16Of(bytes: Uint8Array): "le" | "be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "be" : undefined;
}

/**
 * Undefined for a file that is no text. Text in other encodings than UTF-8 is read as Latin-1, so that its words are
 * found.
 */
function textOf(bytes: Buffer): string | undefined {
  const wide = utf16Of(bytes);
  if (wide !== undefined) return new TextDecoder(`utf-16${wide}`).decode(bytes);
  if (!isText(bytes)) return undefined;
  if (isUtf8(bytes)) return bytes.toString("utf8");
  // The bound may have cut a character.
  for (let cut = 1; cut <= 3; cut += 1) {
    const shorter = bytes.subarray(0, bytes.length - cut);
    if (isUtf8(shorter)) return shorter.toString("utf8");
  }
  return bytes.toString("latin1");
}

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

const CODE = new Set(
  ".js .cjs .mjs .jsx .ts .cts .mts .tsx .py .pyw .rb .php .pl .pm .sh .bash .zsh .fish .ps1 .bat .cmd .c .h .cc .cpp .hpp .cs .java .kt .kts .scala .groovy .gradle .go .rs .swift .lua .r .m .mm .vue .svelte .coffee .ex .exs .erl .clj .sql .mk .cmake .vbs .jl .dart .zig .nim .pth .gemspec".split(
    " ",
  ),
);
const CODE_NAMES =
  /^(?:gnu)?makefile$|^(?:rake|gem|docker|container|jenkins|vagrant|brew|pod|fast|just|earth)file$|^\.(?:envrc|bashrc|zshrc|profile|bash_profile)$/;

export const isCode = ({ ending, lower, text }: LookedAtFile): boolean =>
  CODE.has(ending) || CODE_NAMES.test(lower) || text?.startsWith("#!") === true;

/** Whether people read the file, in a terminal or on a page. */
export const isProse = ({ ending, lower }: LookedAtFile): boolean =>
  /^\.(?:md|mdx|markdown|rst|txt|adoc|asciidoc|org|textile|mdc|man|1|5|7)$/.test(ending) ||
  /^(?:readme|license|licence|copying|changelog|changes|history|news|authors|contributing|notice|install|todo|security)$/.test(
    lower,
  );

const AGENT_NAMES =
  /^(?:(?:agents?|claude|gemini|copilot|codex|qwen|warp|grok|opencode|cursor|kiro|jules|soul|memory)(?:\.[\w-]+)*\.md|skill\.md|copilot-instructions\.md|\.(?:cursor|windsurf|cline|roo|kilocode|trae|augment)rules|\.cursorrules.*|\.goosehints|\.aider.*|llms(?:-full)?\.txt|conventions\.md)$|\.(?:mdc|prompt\.md|instructions\.md|chatmode\.md|agent\.md)$/;
const AGENT_FOLDERS =
  /(?:^|\/)\.(?:claude|codex|agents|gemini|cursor|windsurf|opencode|clinerules|roo|kiro|continue|junie|amazonq|augment|trae|qwen|amp|goose)\//i;

/** Whether coding agents take the file as their instructions. */
export const isForAgents = ({ path, lower }: LookedAtFile): boolean =>
  AGENT_NAMES.test(lower) || AGENT_FOLDERS.test(path);
