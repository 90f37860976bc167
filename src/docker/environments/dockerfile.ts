import type { Context } from "./context-files.ts";
import {
  type CopiedFile,
  Fault,
  expandVariables,
  joinFolders,
  linesOfCopy,
  quoted,
  unquoted,
  wordsOf,
} from "./dockerfile-copies.ts";
import { type TakenPaths, USER_FORM } from "./recipe.ts";

/**
 * The lines of a Dockerfile from which a system layer can be made: the image that the last stage starts from, its RUN
 * lines with the variables and folder of each, and the variables for boxes. No engine builds the Dockerfile, so nothing
 * in it runs outside a box's walls. Whatever else it asks for is reported; text that cannot be read is a fault.
 */

export interface DockerfileLine {
  /** A line for a shell. */
  readonly run: string;
  /** The user that runs the line, if not root. */
  readonly user?: string;
  /** Absolute. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Files that are put in place before the line runs. */
  readonly files?: readonly CopiedFile[];
  /** Files of a stage that are put in place before the line runs. */
  readonly from?: TakenPaths;
}

interface ReadStage {
  readonly image: string;
  readonly lines: readonly DockerfileLine[];
  readonly notTaken: readonly string[];
}

interface ReadDockerfile {
  readonly image: string;
  readonly lines: readonly DockerfileLine[];
  /** Stages that files are taken from, each after the stages that it takes files from itself. */
  readonly stages: readonly ReadStage[];
  /** Variables for every box. */
  readonly env: Readonly<Record<string, string>>;
  readonly notTaken: readonly string[];
  /** What COPY and ADD name of the build's context, as written. */
  readonly sources: readonly string[];
}

interface DockerfileBuild {
  readonly args?: Readonly<Record<string, string>>;
  readonly target?: string | undefined;
  /** What was found for each of `sources`; left out if nobody looked. */
  readonly context?: Context | undefined;
}

/** The content of a Dockerfile, or a text that says why it cannot be used. */
export function readDockerfile(text: string, build: DockerfileBuild = {}): ReadDockerfile | string {
  try {
    return new DockerfileReader(build).read(text);
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown.message;
    throw thrown;
  }
}

interface Instruction {
  readonly line: number;
  readonly name: string;
  readonly rest: string;
  /** For `<<EOF`: the text up to its end. */
  readonly body: string | undefined;
}

const MAX_INSTRUCTIONS = 1000;

/** Lines that continue after `\` (or the character of a directive) count as one; comments between them are left out. */
function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const escape = /^#\s*escape\s*=\s*`/im.test(lines.slice(0, 3).join("\n")) ? "`" : "\\";
  const found: Instruction[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    if (/^\s*(?:#|$)/.test(lines[at] ?? "")) continue;
    const line = at + 1;
    const { whole, end } = wholeLine(lines, at, escape);
    at = end;
    const [, name = "", rest = ""] = /^\s*([A-Za-z]+)(?:\s+([^]*))?$/.exec(whole) ?? [];
    if (name === "") throw new Fault(`line ${line}: not an instruction`);
    const upper = name.toUpperCase();
    const body = WITH_BODY.has(upper) ? bodyOf(rest, lines, at) : undefined;
    at = body?.end ?? at;
    found.push({ line, name: upper, rest: rest.trim(), body: body?.text });
    if (found.length > MAX_INSTRUCTIONS) throw new Fault(`more than ${MAX_INSTRUCTIONS} instructions`);
  }
  return found;
}

const WITH_BODY = new Set(["RUN", "COPY", "ADD"]);

function wholeLine(
  lines: readonly string[],
  start: number,
  escape: string,
): { readonly whole: string; readonly end: number } {
  const parts: string[] = [];
  for (let at = start; at < lines.length; at += 1) {
    const each = lines[at] ?? "";
    if (at > start && /^\s*(?:#|$)/.test(each)) continue;
    const isLast = !each.trimEnd().endsWith(escape);
    parts.push(isLast ? each : each.trimEnd().slice(0, -1));
    if (isLast) return { whole: parts.join(" "), end: at };
  }
  return { whole: parts.join(" "), end: lines.length };
}

/** The text between `<<EOF` and `EOF`. */
function bodyOf(
  rest: string,
  lines: readonly string[],
  at: number,
): { readonly text: string; readonly end: number } | undefined {
  // A shift of numbers and a word for the standard input (`<<<`) begin no body.
  const [, dash = "", word = ""] = /(?<![<\w(])<<(-?)["']?([A-Za-z_][\w.-]*)["']?/.exec(rest) ?? [];
  if (word === "") return undefined;
  const strip = (line: string): string => (dash === "" ? line : line.replace(/^\t+/, ""));
  const end = lines.findIndex((line, index) => index > at && strip(line) === word);
  if (end === -1) throw new Fault(`line ${at + 1}: no end of <<${word}`);
  const text = lines
    .slice(at + 1, end)
    .map(strip)
    .join("\n");
  return { text, end };
}

interface Stage {
  readonly name: string;
  image: string;
  readonly lines: DockerfileLine[];
  env: Record<string, string>;
  args: Record<string, string>;
  folder: string;
  shell: readonly string[] | undefined;
  user: string | undefined;
  readonly notTaken: string[];
}

const IGNORED = new Set(["LABEL", "MAINTAINER", "CMD", "ENTRYPOINT", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"]);
const REASONS: Readonly<Record<string, string>> = {
  VOLUME: "folders are kept by the recipe",
  ONBUILD: "nothing is built from it",
};

class DockerfileReader {
  readonly #build: DockerfileBuild;
  readonly #stages: Stage[] = [];
  /** Arguments before the first FROM. */
  readonly #global: Record<string, string> = {};
  readonly #sources = new Set<string>();
  /** What lines take files from, by number: stages, and other images by name. */
  readonly #taken: (Stage | string)[] = [];

  constructor(build: DockerfileBuild) {
    this.#build = build;
  }

  read(text: string): ReadDockerfile {
    for (const each of instructionsOf(text)) this.#instruction(each);
    const { target } = this.#build;
    const last =
      target === undefined
        ? this.#stages.at(-1)
        : this.#stages.find(({ name }) => name === target.toLowerCase());
    if (last === undefined)
      throw new Fault(target === undefined ? "it has no FROM" : `it has no stage ${target}`);
    const { image, env, user } = last;
    const { lines, stages } = neededStages(
      last.lines,
      this.#taken.map((each) => (typeof each === "string" ? { image: each, lines: [], notTaken: [] } : each)),
    );
    const notTaken = [...stages.flatMap((stage) => [...stage.notTaken]), ...last.notTaken];
    const whose = user === undefined ? [] : [`USER ${user}, for boxes: they run as the workspace's owner`];
    const sources = [...this.#sources];
    return { image, lines, stages, env, notTaken: [...new Set([...notTaken, ...whose])], sources };
  }

  #instruction(instruction: Instruction): void {
    const { name, rest, line } = instruction;
    if (name === "FROM") return this.#from(rest, line);
    const stage = this.#stages.at(-1);
    if (name === "ARG") return this.#arg(rest, line, stage);
    if (stage === undefined) throw new Fault(`line ${line}: ${name} before FROM`);
    const reason = REASONS[name];
    if (IGNORED.has(name)) return undefined;
    // All values of one instruction see the variables from before it.
    if (name === "ENV")
      Object.assign(
        stage.env,
        Object.fromEntries(pairsOf(rest, line).map(([key, value]) => [key, expandVariables(value, stage)])),
      );
    else if (name === "WORKDIR")
      stage.folder = joinFolders(stage.folder, expandVariables(unquoted(rest), stage));
    else if (name === "SHELL") stage.shell = wordsOf(rest, line);
    else if (name === "RUN") this.#run(instruction, stage);
    else if (name === "COPY" || name === "ADD") this.#copy(instruction, stage);
    else if (name === "USER") stage.user = userOf(expandVariables(unquoted(rest), stage), line);
    else if (reason === undefined) throw new Fault(`line ${line}: ${name} is not known`);
    else stage.notTaken.push(`${name} ${rest.slice(0, 200)}: ${reason}`);
    return undefined;
  }

  #from(rest: string, line: number): void {
    const flags = /^(?:--[\w-]+=\S+\s+)+/.exec(rest)?.[0] ?? "";
    const [, base = "", as = ""] = /^(\S+)(?:\s+as\s+(\S+))?$/i.exec(rest.slice(flags.length)) ?? [];
    const image = expandVariables(unquoted(base), { env: {}, args: this.#global });
    if (image === "" || image === "scratch")
      throw new Fault(`line ${line}: FROM ${rest}: not an image that a box can start from`);
    const before: Stage = this.#stages.find(({ name }) => name !== "" && name === image.toLowerCase()) ?? {
      name: "",
      image,
      lines: [],
      env: {},
      args: {},
      folder: "/",
      shell: undefined,
      user: undefined,
      notTaken: [],
    };
    const notTaken = flags === "" ? [] : [`FROM ${flags.trim()}: the engine's own platform is used`];
    this.#stages.push({
      ...before,
      name: as.toLowerCase(),
      lines: [...before.lines],
      env: { ...before.env },
      args: {},
      notTaken: [...before.notTaken, ...notTaken],
    });
  }

  #arg(rest: string, line: number, stage: Stage | undefined): void {
    for (const [, name = "", value] of rest.matchAll(/([A-Za-z_]\w*)(?:=("[^"]*"|'[^']*'|\S*))?/g)) {
      if (name === "") throw new Fault(`line ${line}: ARG without a name`);
      const argument = this.#build.args?.[name];
      const fallback = value === undefined ? this.#global[name] : unquoted(value);
      const scope = stage ?? { env: {}, args: this.#global };
      const known = argument ?? (fallback === undefined ? undefined : expandVariables(fallback, scope));
      if (known !== undefined) scope.args[name] = known;
    }
  }

  #copy({ name, rest, line, body }: Instruction, stage: Stage): void {
    const brought = linesOfCopy({
      name,
      rest,
      line,
      body,
      folder: stage.folder,
      scope: stage,
      context: this.#build.context,
      stageOf: (from) => this.#stageOf(from),
    });
    for (const source of brought.sources) this.#sources.add(source);
    if (brought.why !== undefined) stage.notTaken.push(`${name} ${rest.slice(0, 200)}: ${brought.why}`);
    for (const each of brought.lines) stage.lines.push({ folder: "/", env: {}, ...each });
  }

  /** Resolves `--from`: a stage before this one by name or number, else an image; a text if it can be neither. */
  #stageOf(from: string): number | string {
    const before = this.#stages.slice(0, -1);
    const stage = /^\d+$/.test(from)
      ? before[Number(from)]
      : before.findLast(({ name }) => name !== "" && name === from.toLowerCase());
    if (stage === undefined && (/^\d+$/.test(from) || !IMAGE.test(from)))
      return `${from} is neither a stage before it nor an image`;
    const taken = stage ?? from;
    if (!this.#taken.includes(taken)) this.#taken.push(taken);
    return this.#taken.indexOf(taken);
  }

  #run({ rest, line, body }: Instruction, stage: Stage): void {
    const flags = /^(?:--[\w-]+(?:=\S+)?\s+)+/.exec(rest)?.[0] ?? "";
    for (const flag of flags.trim().split(/\s+/))
      if (!/^(?:|--mount=.*type=(?:cache|tmpfs).*|--network=.*|--security=.*)$/.test(flag))
        stage.notTaken.push(`RUN ${flag}: nothing is mounted while the layer is made`);
    const run = lineOf({ command: rest.slice(flags.length).trim(), body, line, shell: stage.shell });
    const env = { ...stage.args, ...stage.env };
    const whose = stage.user === undefined ? {} : { user: stage.user };
    stage.lines.push({ run, folder: stage.folder, env, ...whose });
  }
}

/** The stages that these lines need, directly or through others, with new numbers: each after those that it needs. */
function neededStages(
  lines: readonly DockerfileLine[],
  all: readonly ReadStage[],
): { readonly lines: readonly DockerfileLine[]; readonly stages: readonly ReadStage[] } {
  const needed = new Set<number>();
  const need = (each: readonly DockerfileLine[]): void => {
    for (const { from } of each)
      if (from !== undefined && !needed.has(from.stage)) {
        needed.add(from.stage);
        need(all[from.stage]?.lines ?? []);
      }
  };
  need(lines);
  const order = [...needed].toSorted((a, b) => a - b);
  const renumbered = (line: DockerfileLine): DockerfileLine =>
    line.from === undefined
      ? line
      : { ...line, from: { ...line.from, stage: order.indexOf(line.from.stage) } };
  const stages = order.flatMap((at) => all[at] ?? []);
  return {
    lines: lines.map(renumbered),
    stages: stages.map((stage) => ({ ...stage, lines: stage.lines.map(renumbered) })),
  };
}

const IMAGE =
  /^[a-z0-9][a-z0-9.-]*(?::\d{1,5}(?=\/))?(?:\/[a-z0-9][\w.-]*)*(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]{64})?$/i;

/** Undefined for root. */
function userOf(text: string, line: number): string | undefined {
  if (!USER_FORM.test(text)) throw new Fault(`line ${line}: USER ${text}: not the name or number of a user`);
  return /^(?:root|0)(?::(?:root|0))?$/.test(text) ? undefined : text;
}

interface Command {
  readonly command: string;
  readonly body: string | undefined;
  readonly line: number;
  readonly shell: readonly string[] | undefined;
}

/** A line for `sh`, whatever form and shell the instruction has. */
function lineOf({ command, body, line, shell }: Command): string {
  if (command.startsWith("[")) return wordsOf(command, line).map(quoted).join(" ");
  const alone = /^<<-?["']?[\w.-]+["']?$/.test(command);
  if (alone && /^#!(?!\s*\/(?:usr\/)?bin\/(?:env\s+)?(?:ba|da)?sh\b)/.test(body ?? ""))
    throw new Fault(`line ${line}: RUN with a script for a program other than a shell`);
  const whole = body === undefined ? command : `${command}\n${body}\n${endOf(command)}`;
  const script = alone ? (body ?? "") : whole;
  if (script.trim() === "") throw new Fault(`line ${line}: RUN without a command`);
  return shell === undefined ? script : [...shell, script].map(quoted).join(" ");
}

const endOf = (command: string): string => /(?<![<\w(])<<-?["']?([A-Za-z_][\w.-]*)/.exec(command)?.[1] ?? "";

/** `A=1 B="two words"`, or `A the rest`. */
function pairsOf(rest: string, line: number): readonly (readonly [name: string, value: string])[] {
  const old = /^([A-Za-z_]\w*)\s+([^]+)$/.exec(rest);
  if (old !== null && !/^[A-Za-z_]\w*=/.test(rest)) return [[old[1] ?? "", (old[2] ?? "").trim()]];
  const pairs = Array.from(
    rest.matchAll(/([A-Za-z_]\w*)=((?:"(?:[^"\\]|\\[^])*"|'[^']*'|\\[^]|[^\s"'\\])*)/g),
    ([, name = "", value = ""]) => [name, unquoted(value)] as const,
  );
  if (pairs.length === 0) throw new Fault(`line ${line}: ENV without a value`);
  return pairs;
}
