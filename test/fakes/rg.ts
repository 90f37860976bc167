import path from "node:path";
import type { FakeProcess } from "./commands.ts";

/** The small part of ripgrep that the tools use, with --null; globs and context lines are ignored. */
export async function rg({ words, folder, files, out, err }: FakeProcess): Promise<number> {
  const place = path.resolve(folder, words.at(-1) ?? ".");
  const names = files.names(place);
  if (files.stat(place).kind !== "ok") {
    await err(`rg: ${place}: No such file or directory (os error 2)\n`);
    return 2;
  }
  if (words.includes("--files")) {
    for (const name of names) await out(`${name}\0`);
    return names.length > 0 ? 0 : 1;
  }
  const pattern = patternOf(words);
  if (pattern === undefined) {
    await err("regex parse error:\n    (\nerror: unclosed group\n");
    return 2;
  }
  const lines = names.flatMap((name) => linesIn(name, files).filter(({ text }) => pattern.test(text)));
  for (const { name, line, text } of lines) await out(`${name}\0${line}:${text}\n`);
  return lines.length > 0 ? 0 : 1;
}

function patternOf(words: readonly string[]): RegExp | undefined {
  try {
    return new RegExp(words[words.indexOf("-e") + 1] ?? "", words.includes("--ignore-case") ? "i" : "");
  } catch {
    return undefined;
  }
}

function linesIn(name: string, files: FakeProcess["files"]) {
  const read = files.read(name);
  const text = read.kind === "ok" ? Buffer.from(read.value.content).toString("utf8") : "";
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((text, index) => ({ name, line: index + 1, text }));
}
