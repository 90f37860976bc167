import { execFile } from "node:child_process";
import { cp, symlink } from "node:fs/promises";
import path from "node:path";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

export const repository = path.join(import.meta.dirname, "../..");
export const bin = path.join(repository, "node_modules/.bin");

/** A file planted in a copy of the house, and the linter's expected messages: none if the file is allowed. */
export interface Planted {
  readonly name: string;
  readonly file: string;
  readonly text: string;
  readonly red: readonly string[];
}

interface Report {
  readonly diagnostics: readonly {
    /** Absent for messages about the linter's own directives. */
    readonly code?: string;
    readonly message: string;
    readonly filename: string;
  }[];
}

/** A tree with the real configuration and nothing to lint yet. */
export async function emptyHouse(): Promise<Scratch> {
  const place = await scratch({ "test/.keep": "" });
  for (const file of [".oxlintrc.json", "tsconfig.json", "package.json", "test/house/house.js"])
    await cp(path.join(repository, file), place.at(file));
  await symlink(path.join(repository, "node_modules"), place.at("node_modules"));
  return place;
}

/** The real linter's messages, by file: `rule` or, for our own rules, `rule: message`. */
export async function lint(place: Scratch): Promise<ReadonlyMap<string, readonly string[]>> {
  const { stdout } = await run(path.join(bin, "oxlint"), ["--format=json", "src", "sandbox"], place.path);
  const { diagnostics } = JSON.parse(stdout) as Report;
  const byFile = Map.groupBy(diagnostics, ({ filename }) => filename);
  return new Map([...byFile].map(([file, found]) => [file, found.map(described).toSorted()]));
}

const described = ({ code, message }: Report["diagnostics"][number]): string =>
  code === undefined ? message : code.startsWith("house(") ? `${code}: ${message}` : code;

export interface Ended {
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export function run(program: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, maxBuffer: 2 ** 26, env: { PATH: `${bin}:${process.env["PATH"] ?? ""}` } };
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
