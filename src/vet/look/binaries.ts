import { isCode, isProse, type LookedAtFile } from "./looked-at-file.ts";
import type { Found } from "./rules.ts";

/** Looks for compiled programs, whatever their names, and for scripts that are called something else. */

type Native = "ELF" | "Mach-O" | "PE" | "wasm" | "class" | "object";

const NATIVE: readonly (readonly [Native, readonly number[]])[] = [
  ["ELF", [0x7f, 0x45, 0x4c, 0x46]],
  ["Mach-O", [0xfe, 0xed, 0xfa, 0xce]],
  ["Mach-O", [0xfe, 0xed, 0xfa, 0xcf]],
  ["Mach-O", [0xce, 0xfa, 0xed, 0xfe]],
  ["Mach-O", [0xcf, 0xfa, 0xed, 0xfe]],
  ["wasm", [0, 0x61, 0x73, 0x6d]],
  ["object", [0x21, 0x3c, 0x61, 0x72, 0x63, 0x68, 0x3e, 0x0a]],
];
const FAT_OR_CLASS = [0xca, 0xfe, 0xba, 0xbe];

function nativeIn(bytes: Buffer): Native | undefined {
  const begins = (magic: readonly number[]): boolean => magic.every((byte, at) => bytes[at] === byte);
  const known = NATIVE.find(([, magic]) => begins(magic))?.[0];
  if (known !== undefined) return known;
  // A class of Java has its version there, a fat Mach-O the small number of its parts.
  if (begins(FAT_OR_CLASS) && bytes.length >= 8) return bytes.readUInt32BE(4) < 30 ? "Mach-O" : "class";
  if (bytes[0] !== 0x4d || bytes[1] !== 0x5a || bytes.length < 0x40) return undefined;
  const at = bytes.readUInt32LE(0x3c);
  return bytes.toString("latin1", at, at + 4) === "PE\0\0" ? "PE" : undefined;
}

/** Endings of files in which compiled code is expected. */
const ENDINGS =
  /^\.(?:node|so|dylib|dll|exe|pyd|a|o|obj|lib|wasm|class|ko|elf|bin|out|com|sys|mui|efi|dat|rlib|rmeta|bc|bundle|xll|ocx|cpl|tlb|ax|scr|node\w*|appimage|img|rom|mex\w*|macho|dSYM|prl)$|^\.so\.[\d.]+$|^\.\d+$/;
/** Endings of files that nobody takes for a program. */
const DATA =
  /^\.(?:png|jpe?g|gif|webp|bmp|ico|svg|tiff?|mp[34]|wav|ogg|webm|mov|avi|woff2?|ttf|otf|eot|pdf|docx?|xlsx?|pptx?|txt|md|rst|json|ya?ml|toml|xml|html?|css|csv|lock|map|log|ini|cfg|conf)$/;
const IMAGE =
  /^\.(?:png|jpe?g|gif|webp|bmp|ico|tiff?|mp[34]|wav|ogg|webm|mov|avi|woff2?|ttf|otf|eot|pdf|heic|psd)$/;
const SCRIPT =
  /^\s*(?:#!\s*\/|<\?php|@echo\s+off|import\s+\w+|from\s+\w+\s+import|\(?(?:async\s+)?function\b|const\s+\w|var\s+_?\w|'use strict'|"use strict"|\(\(?\)?\s*=>|global\b|!function)|\b(?:eval|require|child_process|exec|fromCharCode|subprocess|powershell)\s*\(/;
/** Characters at the beginning of a picture or document in which a script is looked for. */
const BEGINNING = 4096;

/** Compiled code that no system runs by itself. */
const PARTS: ReadonlySet<Native> = new Set(["class", "wasm", "object"]);
const MODE_RUNS = 0o111;

export function lookAtBinary(file: LookedAtFile, found: Found): void {
  const { path, lower, ending, mode } = file;
  const native = nativeIn(file.bytes);
  if (native === undefined) {
    lookAtDisguise(file, found);
    return;
  }
  const library = ENDINGS.test(ending) || /\.so(?:\.\d+)+$/.test(lower);
  const disguised = DATA.test(ending) || isCode(file) || isProse(file);
  if (disguised && !library) found.add("binary.disguised", `${native} named ${ending || lower}`, { path });
  else if (library || PARTS.has(native)) found.add("binary.native", native, { path });
  else if (lower.startsWith(".")) found.add("binary.hidden", `${native} in a hidden file`, { path });
  else
    found.add("binary.program", `${native}${(mode & MODE_RUNS) === 0 ? "" : ", marked as executable"}`, {
      path,
    });
}

function lookAtDisguise({ path, ending, text }: LookedAtFile, found: Found): void {
  if (text === undefined || !IMAGE.test(ending)) return;
  const beginning = text.slice(0, BEGINNING);
  if (SCRIPT.test(beginning)) found.add("binary.lying-script", `a script named ${ending}`, { path });
}
