import type { Act, SeenProcess } from "../../core/behaviour.ts";
import { lastName } from "../../core/text/file-paths.ts";
import { clipped } from "../../core/text/short-lists.ts";
import { visibleLine } from "../../core/text/visible.ts";

const MAX_WORDS = 120;
const MAX_LINKS = 12;

/** Which process started which, as seen in one command. */
export class SeenChains {
  readonly #byPid: ReadonlyMap<number, readonly SeenProcess[]>;
  readonly #workspace: string;

  constructor(processes: readonly SeenProcess[], workspace: string) {
    this.#byPid = Map.groupBy(
      processes.toSorted((one, other) => one.at - other.at),
      ({ pid }) => pid,
    );
    this.#workspace = workspace;
  }

  /** The program that a process was at that time. */
  at(pid: number, at: number): SeenProcess | undefined {
    const own = this.#byPid.get(pid);
    return own?.findLast((each) => each.at <= at) ?? own?.[0];
  }

  /** The commands that led to the process, the outermost first; made visible and cut. */
  of(pid: number, at: number): readonly string[] {
    return this.#lineOf(pid, at).map(({ words }) => shown(words));
  }

  #lineOf(pid: number, at: number): readonly SeenProcess[] {
    const line: SeenProcess[] = [];
    const seen = new Set<number>();
    let [next, when] = [pid, at];
    while (!seen.has(next) && line.length < MAX_LINKS) {
      seen.add(next);
      const found = this.at(next, when);
      if (found === undefined) break;
      line.unshift(found);
      [next, when] = [found.parent, found.at];
    }
    return line;
  }

  /** Whether the process is a tool of this name that does not lie in the repository: by its program, or its script. */
  isTool(pid: number, at: number, names: ReadonlySet<string>): boolean {
    const words = this.at(pid, at)?.words ?? [];
    return toolNames(words, this.#workspace).some((name) => names.has(name));
  }

  /** Whether the process is such a tool, or something that such a tool started. */
  isUnder(pid: number, at: number, names: ReadonlySet<string>): boolean {
    return this.#lineOf(pid, at).some(({ words }) =>
      toolNames(words, this.#workspace).some((name) => names.has(name)),
    );
  }
}

const INTERPRETERS = /^(?:node|python[\d.]*|ruby|perl|php|sh|bash|dash|zsh|env)$/;

/**
 * Names of the program of a command line and of the script that it interprets, if these do not lie in the repository.
 */
function toolNames(words: readonly string[], workspace: string): readonly string[] {
  const [program = "", script = ""] = words;
  const names = isOutside(program, workspace) ? [lastName(program)] : [];
  if (INTERPRETERS.test(lastName(program)) && script.startsWith("/") && isOutside(script, workspace))
    names.push(lastName(script).replace(/\.(?:c|m)?js$/, ""));
  return names;
}

const isOutside = (word: string, workspace: string): boolean =>
  !word.startsWith("./") &&
  !word.startsWith("../") &&
  !word.startsWith(`${workspace}/`) &&
  !/^[^/]+\//.test(word);

function shown(words: readonly string[]): string {
  const text = visibleLine(
    words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word}'`)).join(" "),
  );
  return clipped(text, MAX_WORDS);
}

export type PathAct = Extract<Act, { readonly path: string }>;
export type SocketAct = Extract<Act, { readonly address: string }>;
export type NameAct = Extract<Act, { readonly kind: "name" }>;
export type CallAct = Extract<Act, { readonly kind: "call" }>;

export const isPathAct = (act: Act): act is PathAct => "path" in act;
export const isSocketAct = (act: Act): act is SocketAct => "address" in act;
export const isCallAct = (act: Act): act is CallAct => act.kind === "call";
