import type { Checkpoints } from "../../core/session.ts";
import { type Box, inputOf } from "../../core/ports.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { folderBefore } from "../../core/file-names.ts";
import { visibleLine } from "../../core/visible.ts";
import { byContent, isCache } from "./run-changes.ts";

/*
 * Whether the files that a run wrote still match their names: valid JSON, a program that parses. Small models write
 * line numbers, prose and half a file into code, and call that done. The files are only parsed, in the box, and never
 * run; Perl alone runs a part of a program to parse the rest.
 */

/** A file that does not parse now, and either did before or is new. */
export interface BrokenFile {
  readonly path: string;
  /** In the words of its parser. */
  readonly error: string;
}

/** Most files that are parsed, and most bytes of each. */
const MAX_FILES = 20;
const MAX_BYTES = 256 * 1024;
const TIME_MS = 10_000;
const KEEP = { head: 2048, tail: 0 };
const MAX_MESSAGE_LENGTH = 200;

const PYTHON = `import ast, sys
try: ast.parse(sys.stdin.buffer.read())
except SyntaxError as e: sys.exit(f"line {e.lineno}: {e.msg}")`;

/** Accepts either kind of module: the project decides which one the file is. */
const JAVASCRIPT = `const { Script, SourceTextModule } = require("node:vm");
const text = require("node:fs").readFileSync(0, "utf8").replace(/^#!.*/, "");
try { new Script("(async function () {" + text + "\\n})"); }
catch (first) {
  try { new SourceTextModule(text); }
  catch { console.error(first.message); process.exitCode = 1; }
}`;

const TYPESCRIPT = `const text = require("node:fs").readFileSync(0, "utf8");
try { require("node:module").stripTypeScriptTypes(text, { mode: "transform" }); }
catch (error) {
  if (error.code === "ERR_INVALID_TYPESCRIPT_SYNTAX") { console.error(error.message); process.exitCode = 1; }
}`;

/** Available since Python 3.11. */
const TOML = `import sys
try: import tomllib
except ImportError: sys.exit(0)
try: tomllib.loads(sys.stdin.buffer.read().decode())
except tomllib.TOMLDecodeError as e: sys.exit(str(e))`;

interface Parser {
  /** Reads the text from standard input; left out for JSON and YAML, which are parsed here. */
  readonly words?: readonly string[];
  readonly isYaml?: true;
  /** Exit codes that mean a syntax error. */
  readonly exits?: readonly number[];
  /** Output that means a syntax error; any other output means that a module is missing. */
  readonly says?: RegExp;
  /** A new file can be judged by itself. False when it is unknown what else the parser needs for it. */
  readonly knownAlone: boolean;
  /** Matches a dialect with the same extension that the parser does not know. */
  readonly not?: RegExp;
}

const NODE = {
  words: ["node", "--experimental-vm-modules", "--no-warnings", "-e", JAVASCRIPT],
  knownAlone: true,
  not: /<\/?[A-Z][\w.]*[\s/>]|<\/[a-z]+>|^\s*\/[/*]\s*@flow/m,
};
const SHELL = { words: ["bash", "-n"], knownAlone: true, not: /^#!(?!.*\b(?:ba)?sh\b)/ };
const compiled = (language: string): Parser => ({
  words: ["gcc", "-fsyntax-only", "-w", "-x", language, "-"],
  knownAlone: false,
});

const TYPED: Parser = {
  words: ["node", "--no-warnings", "-e", TYPESCRIPT],
  knownAlone: true,
  // Decorators come in two dialects, and Qt's translation files use the extension .ts.
  not: /^\s*(?:@\w|<)/m,
};
const PERL: Parser = {
  words: ["perl", "-c"],
  knownAlone: true,
  exits: [255],
  // Prolog uses the same extensions.
  not: /:-/,
  says: /\bsyntax error\b|^Missing right curly|^Unmatched right|^Can't find string terminator/m,
};

/** Templates use the same extensions. */
const YAML: Parser = { isYaml: true, knownAlone: true, not: /\{\{|\{%|<%/ };

const PARSERS: Readonly<Record<string, Parser>> = {
  ".json": { knownAlone: true },
  ".yaml": YAML,
  ".yml": YAML,
  ".py": { words: ["python3", "-I", "-c", PYTHON], knownAlone: true },
  ".js": NODE,
  ".cjs": NODE,
  ".mjs": NODE,
  ".sh": SHELL,
  ".bash": SHELL,
  ".c": compiled("c"),
  ...Object.fromEntries([".cc", ".cpp", ".cxx"].map((extension) => [extension, compiled("c++")])),
  ...Object.fromEntries([".ts", ".mts", ".cts"].map((extension) => [extension, TYPED])),
  ...Object.fromEntries([".pl", ".pm", ".t"].map((extension) => [extension, PERL])),
  ".toml": { words: ["python3", "-I", "-c", TOML], knownAlone: true },
  ".go": { words: ["gofmt", "-e"], knownAlone: true },
  ".rb": { words: ["ruby", "-c"], knownAlone: true },
  ".php": { words: ["php", "-l"], knownAlone: true, exits: [255], says: /Parse error/ },
};

/** Files that are broken on purpose. */
const ON_PURPOSE = /fixture|broken|invalid|malformed|corrupt|\bbad\b/i;

/** What the files of a run are examined with. */
export interface ParseContext {
  readonly box: () => Promise<Box>;
  readonly checkpoints: Pick<Checkpoints, "before" | "unchanged">;
  /** Returns what is wrong with a YAML text; without it no YAML is checked. */
  readonly yamlError?: YamlError | undefined;
}

export type YamlError = (text: string) => Promise<string | undefined>;

/** Files that the run changed and that do not parse now. A parser that is missing in the box reports nothing. */
export async function brokenFiles(agent: ParseContext, signal: AbortSignal): Promise<readonly BrokenFile[]> {
  const box = await agent.box();
  const { all } = await byContent(await box.changes(), agent.checkpoints);
  const broken: BrokenFile[] = [];
  let parsed = 0;
  for (const { path, what } of all) {
    const parser = PARSERS[/\.\w+$/.exec(path)?.[0].toLowerCase() ?? ""];
    if (parser === undefined || what === "deleted" || isCache(path) || ON_PURPOSE.test(path)) continue;
    if (what === "added" && !parser.knownAlone) continue;
    if ((parsed += 1) > MAX_FILES || signal.aborted) break;
    const error = await brokenNow({ path, isNew: what === "added", parser }, { ...agent, open: box }, signal);
    if (error !== undefined) broken.push({ path, error });
  }
  return broken;
}

interface WrittenFile {
  readonly path: string;
  readonly isNew: boolean;
  readonly parser: Parser;
}

async function brokenNow(
  { path, isNew, parser }: WrittenFile,
  { open, checkpoints, yamlError }: ParseContext & { readonly open: Box },
  signal: AbortSignal,
): Promise<string | undefined> {
  const file = await open.read(path, { offset: 0, limit: MAX_BYTES });
  if (file.kind !== "ok" || file.value.content.length >= MAX_BYTES) return undefined;
  const text = textOfBytes(file.value.content);
  const fails = async (each: string): Promise<string | undefined> => {
    if (parser.not?.test(each) === true) return undefined;
    if (parser.isYaml !== true) return parseError(open, parser, { path, text: each }, signal);
    const wrong = await yamlError?.(each);
    return wrong === undefined ? undefined : errorLine(wrong);
  };
  const error = await fails(text);
  if (error === undefined || isNew) return error;
  const before = await checkpoints.before(path);
  // The file did not parse before either, or its earlier text is unknown.
  if (before === undefined || (await fails(before)) !== undefined) return undefined;
  return error;
}

async function parseError(
  box: Box,
  { words, exits = [1, 2], says }: Parser,
  { path, text }: { readonly path: string; readonly text: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (words === undefined) return jsonError(text);
  const request = { words: [...words, ...includeOptions(path, words)], timeoutMs: TIME_MS, keep: KEEP };
  const ended = await box.exec({ ...request, input: inputOf(bytesOfText(text)) }, signal);
  if (!exits.includes(ended.exit_code)) return undefined;
  const output = textOfBytes(ended.stderr.head) || textOfBytes(ended.stdout.head);
  return says?.test(output) === false ? undefined : errorLine(output) || "it does not parse";
}

/** A compiler looks for includes beside the file. */
const includeOptions = (path: string, [program]: readonly string[]): readonly string[] =>
  program === "gcc" ? ["-iquote", folderBefore(path) || "."] : [];

function jsonError(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (thrown) {
    return errorLine(thrown instanceof Error ? thrown.message : "not valid JSON");
  }
}

/** The line that names the error, in the program's own words. */
function errorLine(output: string): string {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const line = lines.find((each) => /error|line \d/i.test(each)) ?? lines[0] ?? "";
  return visibleLine(line.trim()).slice(0, MAX_MESSAGE_LENGTH);
}

const named = (broken: readonly BrokenFile[]): string =>
  broken.map(({ path, error }) => `${visibleLine(path)} (${error})`).join(", ");

/** For the model, told once. */
export const brokenText = (broken: readonly BrokenFile[]): string =>
  `You are not done: what you wrote cannot be parsed: ${named(broken)}. Read each of these files again and mend it.`;

/** For people: why a run failed. */
export const brokenReason = (broken: readonly BrokenFile[]): string =>
  `what the model wrote cannot be parsed: ${named(broken)}`;
