/** Reads the documentation: its pages, their links, and their harness command lines. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { repository } from "./plant.ts";

/** Markdown pages for people, from the root of the repository; the changelog describes past states too. */
export const pages = (): readonly string[] =>
  globSync(["*.md", "docs/*.md", "examples/**/*.md"], { cwd: repository })
    .filter((page) => !page.includes("node_modules"))
    .toSorted();

export const textOf = (page: string): string => readFileSync(path.join(repository, page), "utf8");

const FENCE = /^( *)(```+|~~~+)(\w*)[^\n]*\n([^]*?)^\1\2 *$/gm;

/** The text without code blocks and inline code. */
const prose = (text: string): string => text.replaceAll(FENCE, "").replaceAll(/`[^`\n]*`/g, "`…`");

/** Targets of a page's links, except web addresses. */
export const linksOf = (text: string): readonly string[] =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^(https?|mailto):/.test(target));

/** The anchors of a page, as forges derive them from its headings. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.replaceAll(FENCE, "").matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** A harness command line: its words, and whether it can be typed as shown. */
export interface ShownCommand {
  readonly page: string;
  readonly line: string;
  readonly words: readonly string[];
  /** False for a synopsis with choices or omissions, whose flags can be looked up, but nothing more. */
  readonly whole: boolean;
}

/** `text` blocks show output: flags of commands named in it can be looked up, but nothing more. */
const SHELL = new Set(["sh", "bash", "yaml", "text", ""]);
const PROGRAM = /(^|\/)harness$/;

/** Every harness command line on a page, in blocks and inline code. */
export function shownOn(page: string, text: string): readonly ShownCommand[] {
  const blocks = [...text.matchAll(FENCE)].filter(([, , , language = ""]) => SHELL.has(language));
  const lines = blocks.flatMap(([, , , language, block = ""]) =>
    block
      .replaceAll(/\\\n/g, " ")
      .split("\n")
      .map((line) => ({ line, typed: language !== "text" })),
  );
  const indented = [...text.replaceAll(FENCE, "").matchAll(/^ {4}(harness .*)$/gm)].map(
    ([, line = ""]) => line,
  );
  const inline = [...text.replaceAll(FENCE, "").matchAll(/`(harness [^`]+)`/g)].map(([, line = ""]) =>
    line.replaceAll(/\s+/g, " "),
  );
  return [
    ...lines.flatMap(({ line, typed }) => commandsOf(page, line, typed)),
    ...[...indented, ...inline].flatMap((line) => commandsOf(page, line, false)),
  ];
}

const TOKEN =
  /(?<gap>\s+)|(?<op>&&|\|\||>>?|[|;&()<])|(?<text>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s|;&()<>'"\\])+)|./gsu;

/** The commands of a shell line, each as its words: sufficient for lines written to be read. */
function simpleCommands(line: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]];
  let file = false;
  for (const { groups = {} } of line.matchAll(TOKEN)) {
    const { op, text } = groups;
    if (text?.startsWith("#") === true) break;
    if (op === undefined && text === undefined) continue;
    if (text !== undefined && !file) commands.at(-1)?.push(plain(text));
    if (op !== undefined && !/[<>]/.test(op)) commands.push([]);
    file = op !== undefined && /[<>]/.test(op);
  }
  return commands;
}

const plain = (word: string): string =>
  word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs, (_, single, double, escaped) =>
    String(single ?? double ?? escaped),
  );

function commandsOf(page: string, line: string, block: boolean): readonly ShownCommand[] {
  const unquoted = line.replaceAll(/'[^']*'|"[^"]*"/g, "").replace(/(^|\s)#.*$/, "");
  const whole = block && !/[[\]…]|\s\|\s--|\.\.\./.test(unquoted);
  const bare = (whole ? line : line.replaceAll(/[[\]]/g, " ")).replace(/^\s*(- run:|- |next:|\$)\s+/, "");
  return simpleCommands(bare).flatMap((words) => {
    const at = words.findIndex((word) => !/^\w+=/.test(word));
    const [program = "", ...rest] = words.slice(at);
    return at !== -1 && PROGRAM.test(program) ? [{ page, line: line.trim(), words: rest, whole }] : [];
  });
}
