/**
 * Compiles the knowledge about programs from YAML rows into the models that the policy loads. Every error names its
 * file and row.
 */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { EFFECT_WORDS, optionTable } from "../src/policy/programs/read-arguments.ts";
import {
  type NamedReader,
  type CheckParameter,
  type Model,
  type ROLES,
} from "../src/policy/programs/program-model.ts";
import { readerOf } from "../src/policy/programs/program-readers.ts";
import { type Family, group, readFamily, type Row } from "./program-rows.ts";
import { mistake, splitNames } from "./yaml-table.ts";

export const PROGRAM_FOLDER = path.join(import.meta.dirname, "../src/policy/programs");

/** An example of a row: a command line and the decision it must get. */
export interface Example {
  readonly where: string;
  readonly decision: "allow" | "ask" | "deny";
  readonly command: string;
}

export interface CompiledPrograms {
  readonly programs: Readonly<Record<string, number>>;
  /** Models as JSON, one per entry. */
  readonly models: readonly string[];
  readonly runOthers: readonly string[];
  readonly runWhatFollows: readonly string[];
  readonly examples: readonly Example[];
  /** The names of the programs in these files. */
  namesOf(...files: readonly string[]): readonly string[];
}

/** All program files, by name. */
export function programFiles(): ReadonlyMap<string, string> {
  const files = globSync("*.yaml", { cwd: PROGRAM_FOLDER }).toSorted();
  if (files.length === 0) throw new Error(`no file of programs in ${PROGRAM_FOLDER}`);
  return new Map(files.map((file) => [file, readFileSync(path.join(PROGRAM_FOLDER, file), "utf8")]));
}

type Families = ReadonlyMap<string, Family>;

/** Parses these files, by name. */
export const readFamilies = (files = programFiles()): Families =>
  new Map([...files].map(([file, text]) => [file, readFamily(text, file)]));

/** Compiles all files into one table. */
export const compilePrograms = (families = readFamilies()): CompiledPrograms =>
  new Compiler(families).compile();

/** What applies to all models of a row and its subcommands. */
interface Inherited {
  readonly family: Family;
  readonly file: string;
  readonly first: readonly NamedReader[];
  readonly local: boolean;
  readonly repository: boolean;
}

class Compiler {
  private readonly families: Families;
  private readonly rows = new Map<string, { readonly row: Row; readonly file: string }>();
  private readonly numbers = new Map<string, number>();
  private readonly examples: Example[] = [];

  constructor(families: Families) {
    this.families = families;
  }

  compile(): CompiledPrograms {
    this.takeNames();
    const programs: Record<string, number> = {};
    const runOthers: string[] = [];
    const runWhatFollows: string[] = [];
    for (const [file, family] of this.families) {
      const every = family["every program"] ?? {};
      const inherited: Inherited = {
        family,
        file,
        first: every.first === undefined ? [] : [every.first],
        local: every["telling obeys settings"] === true,
        repository: false,
      };
      for (const [key, row] of Object.entries(family.programs)) {
        const number = this.number(row, inherited, key);
        for (const name of splitNames(key)) programs[name] = number;
        const says = (what: "runs others" | "runs what follows"): boolean =>
          every[what] ?? row[what] ?? false;
        if (says("runs others") || hasSubcommands(row)) runOthers.push(...splitNames(key));
        if (says("runs what follows")) runWhatFollows.push(...splitNames(key));
        this.takeExamples(row, `${file}: ${key}`);
      }
    }
    const namesOf = (...files: readonly string[]): readonly string[] =>
      [...this.rows].filter(([, { file }]) => files.includes(file)).map(([name]) => name);
    const models = [...this.numbers.keys()];
    return { programs, models, runOthers, runWhatFollows, examples: this.examples, namesOf };
  }

  /** Rejects a name that is in two rows. */
  private takeNames(): void {
    for (const [file, family] of this.families)
      for (const [key, row] of Object.entries(family.programs))
        for (const name of splitNames(key)) {
          const other = this.rows.get(name);
          if (other !== undefined) throw mistake(`${file}: ${name}`, `stands in ${other.file} as well`);
          this.rows.set(name, { row, file });
        }
  }

  private takeExamples(row: Row, where: string): void {
    for (const decision of ["allow", "ask", "deny"] as const)
      for (const command of row.examples?.[decision] ?? []) this.examples.push({ where, decision, command });
    for (const [key, inner] of subRows(row)) this.takeExamples(inner, `${where}: ${key}`);
  }

  /** The number of a row's model; equal models share one number. */
  private number(row: Row, inherited: Inherited, where: string): number {
    const model = this.model(row, inherited, where);
    const at = `${inherited.file}: ${where}`;
    try {
      optionTable(model);
      for (const check of [...(model.first ?? []), ...(model.also ?? [])]) readerOf(check);
      if (model.reader !== undefined) readerOf(model.reader);
    } catch (error) {
      throw mistake(at, error instanceof Error ? error.message : String(error));
    }
    const text = JSON.stringify(model);
    const known = this.numbers.get(text);
    if (known !== undefined) return known;
    this.numbers.set(text, this.numbers.size);
    return this.numbers.size - 1;
  }

  private model(own: Row, inherited: Inherited, where: string): Model {
    const row = this.likened(own, inherited, where);
    const { repository, first } = inherited;
    const { options, numbers } = this.optionsOf(row, inherited, where);
    const does = [...(row.does ?? []), ...(repository ? ["obeys settings"] : [])];
    const reader = readerGiven(row, `${inherited.file}: ${where}`);
    const also = (row.also ?? []).map(checkOf);
    const otherwise = row["other subcommand"];
    return filled({
      options,
      numbers,
      arguments: row.arguments === undefined ? {} : argumentsOf(row.arguments),
      does: does.map((word) => EFFECT_WORDS[word as keyof typeof EFFECT_WORDS]),
      ...syntaxOf(row, repository),
      tells: toldBy(row, repository),
      local: inherited.local || repository,
      ...(hasSubcommands(row) ? { commands: this.subcommands(row, inherited, where) } : {}),
      ...(otherwise === undefined
        ? {}
        : { otherwise: this.number(otherwise, inherited, `${where}: other subcommand`) }),
      aliases: row["other names"] ?? {},
      first,
      also,
      ...(reader === null ? {} : { reader }),
    });
  }

  /** Resolves `like`, which copies another row of the file; the row's own keys take precedence. */
  private likened(row: Row, { family, file }: Inherited, where: string): Row {
    if (row.like === undefined) return row;
    const found = rowNamed(family, row.like);
    if (found === null) throw mistake(`${file}: ${where}`, `like ${row.like}: the file has no such row`);
    if (found.like !== undefined)
      throw mistake(`${file}: ${where}`, `like ${row.like}: which is like another one`);
    const { examples: _, ...model } = found;
    return { ...model, ...row };
  }

  private optionsOf(
    row: Row,
    { family, file }: Inherited,
    where: string,
  ): { readonly options: Record<string, string>; readonly numbers: boolean } {
    const all: Record<string, string> = {};
    let numbers = false;
    const take = (given: NonNullable<Row["options"]>): void => {
      const { "option sets": sets, numbers: more, ...groups } = given;
      numbers ||= more === true;
      for (const name of sets === undefined ? [] : splitNames(sets)) {
        const set = family["option sets"]?.[name];
        if (set === undefined) throw mistake(`${file}: ${where}`, `no option set is called ${name}`);
        take(set);
      }
      for (const [name, text] of Object.entries(groups)) {
        const at = `${file}: ${where}: options`;
        if (!group.safeParse(name).success) throw mistake(at, `${name} is no group of options`);
        const stray = text.split(" ").find((word) => !/^--?(?:[^-]|(?<=--)$)/.test(word));
        if (stray !== undefined) throw mistake(at, `${stray} is no option`);
        all[name] = all[name] === undefined ? text : `${all[name]} ${text}`;
      }
    };
    if (row.options !== undefined) take(row.options);
    return { options: all, numbers };
  }

  private subcommands(row: Row, inherited: Inherited, where: string): Record<string, number> {
    const all: Record<string, number> = {};
    const add = (name: string, number: number): void => {
      if (Object.hasOwn(all, name)) throw mistake(`${inherited.file}: ${where}`, `${name} stands twice`);
      all[name] = number;
    };
    for (const name of row["runs programs"]?.split(" ") ?? []) {
      const other = this.rows.get(name);
      if (other === undefined)
        throw mistake(`${inherited.file}: ${where}`, `runs programs: no row is called ${name}`);
      const family = this.families.get(other.file) as Family;
      add(name, this.number(other.row, { ...inherited, family, file: other.file }, name));
    }
    const ofRepository: Inherited = {
      ...inherited,
      repository: true,
      first: ["git settings and signatures"],
    };
    for (const [rows, within] of [
      [row["subcommands of a repository"], ofRepository],
      [row.subcommands, inherited],
    ] as const)
      for (const [key, inner] of Object.entries(rows ?? {})) {
        const number = this.number(inner, within, `${where}: ${key}`);
        for (const name of splitNames(key)) add(name, number);
      }
    return all;
  }
}

const saysSomething = ([key, value]: [string, unknown]): boolean =>
  key === "tells" ||
  key === "commands" ||
  (value !== false && (typeof value !== "object" || value === null || Object.keys(value).length > 0));

/** Removes keys without content. `tells` and `commands` count even when they are empty. */
function filled(model: Readonly<Record<string, unknown>>): Model {
  return Object.fromEntries(Object.entries(model).filter(saysSomething)) as unknown as Model;
}

function syntaxOf(row: Row, repository: boolean): Partial<Record<keyof Model, boolean>> {
  const syntax = new Set<string>(row.syntax);
  const isGnu = syntax.has("gnu");
  return {
    strict: syntax.has("options first"),
    complete: isGnu || syntax.has("complete"),
    singleDash: syntax.has("single dash"),
    abbreviates: isGnu || syntax.has("abbreviates") || repository,
  };
}

const hasSubcommands = (row: Row): boolean =>
  row.subcommands !== undefined ||
  row["runs programs"] !== undefined ||
  row["subcommands of a repository"] !== undefined;

const subRows = (row: Row): readonly (readonly [string, Row])[] => [
  ...Object.entries(row.subcommands ?? {}),
  ...Object.entries(row["subcommands of a repository"] ?? {}),
  ...(row["other subcommand"] === undefined ? [] : [["other subcommand", row["other subcommand"]] as const]),
];

/** Finds a row of the same file: `eslint`, or `git log`. */
function rowNamed(family: Family, name: string): Row | null {
  const find = (rows: readonly (readonly [string, Row])[], rest: string): Row | null => {
    for (const [key, row] of rows)
      for (const each of splitNames(key)) {
        if (rest === each) return row;
        const inner = rest.startsWith(`${each} `) ? find(subRows(row), rest.slice(each.length + 1)) : null;
        if (inner !== null) return inner;
      }
    return null;
  };
  return find(Object.entries(family.programs), name);
}

/** For commands in a repository, `--help` opens a viewer that the repository's settings name. */
function toldBy(row: Row, repository: boolean): readonly string[] {
  const given = row["tells of itself"];
  if (given === "nothing") return [];
  return (given ?? (repository ? "-h --help" : "--version --help")).split(" ");
}

const list = (text: string): NonNullable<NonNullable<Model["arguments"]>["first"]> =>
  text.split(" ") as (typeof ROLES)[number][];

function argumentsOf({
  first,
  rest,
  last,
  none,
}: NonNullable<Row["arguments"]>): NonNullable<Model["arguments"]> {
  return {
    ...(first === undefined ? {} : { first: list(first) }),
    ...(rest === undefined ? {} : { rest: rest as (typeof ROLES)[number] }),
    ...(last === undefined ? {} : { last: list(last) }),
    ...(none === undefined ? {} : { here: true }),
  };
}

function checkOf(given: string | Readonly<Record<string, CheckParameter>>): NamedReader {
  if (typeof given === "string") return given;
  const [[name, parameter] = ["", ""]] = Object.entries(given);
  return [name, parameter];
}

/** The check that replaces the normal reading; at most one is allowed. */
function readerGiven(row: Row, at: string): NamedReader | null {
  const { reader, "only prints": prints, "every use": every, "only with": harmless } = row;
  const all: readonly NamedReader[] = [
    ...(reader === undefined ? [] : [reader]),
    ...(prints === undefined ? [] : [["every use", []] as const]),
    ...(every === undefined ? [] : [["every use", every] as const]),
    ...(harmless === undefined ? [] : [["only with", harmless] as const]),
  ];
  if (all.length > 1) throw mistake(at, "reader, only prints, every use, only with: one of them");
  if (all.length === 1 && row.also !== undefined) throw mistake(at, "also: nothing is read beside a reader");
  return all[0] ?? null;
}
