import { fieldsIn } from "../../core/text/json-values.ts";
import type { Toolchain } from "./recipe.ts";

/** The version of a language that a project asks for. Digits only; null: the project says nothing binding. */

interface Wish {
  readonly toolchain: Toolchain;
  readonly version: string;
  readonly from: string;
}

type Reader = (text: string) => readonly Omit<Wish, "from">[];

const plain =
  (toolchain: Toolchain): Reader =>
  (text) => {
    const version = numbersIn(firstLine(text));
    return version === null ? [] : [{ toolchain, version }];
  };

const ASDF: Readonly<Record<string, Toolchain>> = {
  nodejs: "node",
  node: "node",
  python: "python",
  golang: "go",
  go: "go",
  rust: "rust",
  java: "java",
  php: "php",
  ruby: "ruby",
};

/** `nodejs 20.11.1` on each line; of several versions the first counts. */
const toolVersions: Reader = (text) =>
  text.split("\n").flatMap((line) => {
    const [name = "", first = ""] = line.replace(/#.*/, "").trim().split(/\s+/);
    const [toolchain, version] = [ASDF[name], numbersIn(first)];
    return toolchain === undefined || version === null ? [] : [{ toolchain, version }];
  });

/** Its `go` line names the oldest version that works, not the one to build with: a newer one may be needed by tests. */
const goMod: Reader = (text) => {
  const version = numbersIn(/^toolchain\s+go(\d[\d.]*)/m.exec(text)?.[1] ?? "");
  return version === null ? [] : [{ toolchain: "go", version }];
};

/** The file is TOML, or the channel alone. */
const rustToolchain: Reader = (text) => {
  const channel = /^\s*channel\s*=\s*["']([^"']*)["']/m.exec(text)?.[1] ?? firstLine(text);
  const version = /^\d+\.\d+(?:\.\d+)?$/.test(channel) ? channel : null;
  return version === null ? [] : [{ toolchain: "rust", version }];
};

const pomXml: Reader = (text) => {
  const named =
    /<(?:maven\.compiler\.release|maven\.compiler\.target|java\.version|release)>\s*(?:1\.)?(\d+)\s*</.exec(
      text,
    )?.[1];
  return named === undefined ? [] : [{ toolchain: "java", version: named }];
};

/** An open range is no wish: any later version meets `>=18`. */
const packageJson: Reader = (text) => {
  const { volta, engines } = fieldsIn(text) as {
    readonly volta?: { readonly node?: unknown };
    readonly engines?: { readonly node?: unknown };
  };
  const pinned = numbersIn(textIn(volta?.node));
  const version = pinned ?? majorOfRange(textIn(engines?.node));
  return version === null ? [] : [{ toolchain: "node", version }];
};

/** In order of precedence. */
export const VERSION_FILES: Readonly<Record<string, Reader>> = {
  ".tool-versions": toolVersions,
  ".nvmrc": plain("node"),
  ".node-version": plain("node"),
  ".python-version": plain("python"),
  ".go-version": plain("go"),
  ".ruby-version": plain("ruby"),
  ".java-version": plain("java"),
  "rust-toolchain.toml": rustToolchain,
  "rust-toolchain": rustToolchain,
  "go.mod": goMod,
  "pom.xml": pomXml,
  "package.json": packageJson,
};

/** The numbers of `v20.11.1`, `ruby-3.2`, `go1.22`; null for names such as `lts/*` and `system`. */
export function numbersIn(text: string): string | null {
  return (
    /^(?:v|go|ruby-|python-|temurin-|openjdk-)?(\d{1,4}(?:\.\d{1,4}){0,2})/.exec(text.trim())?.[1] ?? null
  );
}

const firstLine = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .find((line) => line !== "") ?? "";

/** The highest major version in a range with an upper end; null for an open range. */
export function majorOfRange(range: string): string | null {
  const lines = range.split("||").map((part) => {
    const text = part.trim();
    const below = /<\s*(\d+)(?:\.0)*\s*$/.exec(text)?.[1];
    if (below !== undefined) return Number(below) - 1;
    const upTo = /<=?\s*(\d+)/.exec(text)?.[1];
    if (upTo !== undefined) return Number(upTo);
    if (text === "" || text === "*" || text.startsWith(">")) return Infinity;
    return Number(/^[\^~=v\s]*(\d+)/.exec(text)?.[1] ?? Infinity);
  });
  const highest = Math.max(...lines);
  return Number.isFinite(highest) && highest > 0 ? String(highest) : null;
}

export const textIn = (value: unknown): string => (typeof value === "string" ? value : "");
