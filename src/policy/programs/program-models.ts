import { lastName } from "../../core/file-names.ts";
import { fixedEffect, LIGHT, roleEffects, type Force } from "./argument-roles.ts";
import {
  type Arg,
  type Call,
  type Fixed,
  type FoundEffect,
  type Model,
  type OptionTable,
  type UseReader,
  type Role,
  type UseContext,
  type Use,
  UseAt,
} from "./program-model.ts";
import { readerOf } from "./program-readers.ts";
import { MODELS, PROGRAMS, RUN_OTHERS, RUN_WHAT_FOLLOWS } from "./programs.generated.ts";
import { type Manner, optionTable, readArguments, type ArgumentReading } from "./read-arguments.ts";

/** A model with its options parsed and its readers resolved. All have the same keys, in the same order: they are read fast. */
interface Compiled {
  readonly local: boolean;
  readonly does: readonly Fixed[];
  readonly subs: SubCommands | null;
  readonly manner: Manner;
  readonly options: OptionTable;
  readonly operands: OperandTable;
  readonly tells: ReadonlySet<string>;
  readonly first: readonly UseReader[];
  readonly also: readonly UseReader[];
  readonly reader: UseReader | null;
}

interface SubCommands {
  readonly commands: ReadonlyMap<string, number>;
  readonly aliases: ReadonlyMap<string, string>;
  readonly otherwise: number | null;
}

/** The models of programs, each prepared at its first use. */
export class Models {
  readonly #compiled = new Map<Model, Compiled>();
  readonly #table = new ProgramTable();

  find(program: string): Model | undefined {
    return this.#table.find(program);
  }

  /** All effects of this use. `words` starts with the program's name. */
  effects(model: Model, words: readonly [Arg, ...Arg[]], around: UseContext): readonly FoundEffect[] {
    const [name] = words;
    const call = { program: lastName(name.value), name, args: words.slice(1), globals: [] };
    return this.#use(model, call, around);
  }

  /** Prepares every model; throws for a mistake in one. */
  compileAll(): void {
    const compile = (model: Model): void => {
      if (this.#compiled.has(model)) return;
      this.#compile(model);
      for (const number of Object.values(model.commands ?? {})) compile(this.#table.model(number));
      if (model.otherwise !== undefined) compile(this.#table.model(model.otherwise));
    };
    for (const name of this.#table.names) {
      const model = this.#table.find(name);
      if (model !== undefined) compile(model);
    }
  }

  #use(model: Model, call: Call, around: UseContext): readonly FoundEffect[] {
    const compiled = this.#compile(model);
    if (tellsOfItself(call.args, compiled))
      return compiled.local ? [fixedEffect("settings", around.folder, call.program)] : [];
    const { options, first, also, reader, subs } = compiled;
    const found: FoundEffect[] = [];
    if (reader !== null) {
      if (first.length > 0)
        addAll(found, first, new UseAt(call, { options: [], operands: [] }, around), options);
      const own = reader(new UseAt(call, { options: [], operands: call.args }, around), options);
      return found.length === 0 ? own : [...found, ...own];
    }
    const reading = readArguments(call.args, options, compiled.manner);
    const use = new UseAt(call, reading, movedBy(reading, around));
    for (const { doubt, arg, what } of reading.misread) found.push(use.doubt(doubt, arg, what));
    addOptionEffects(found, reading, use);
    if (subs !== null && reading.operands.length > 0) {
      const moved = use.folder === around.folder ? around : around.movedTo(use.folder);
      const below = this.#sub(subs, use, { call, around: moved });
      return found.length === 0 ? below : [...found, ...below];
    }
    addOperandEffects(found, compiled.operands, { reading, use });
    for (const fixed of compiled.does) found.push(fixedEffect(fixed, use.folder, use.program));
    addAll(found, first, use, options);
    addAll(found, also, use, options);
    return found;
  }

  #sub(
    { commands, aliases, otherwise }: SubCommands,
    use: Use,
    { call, around }: { readonly call: Call; readonly around: UseContext },
  ): readonly FoundEffect[] {
    const [name] = use.operands as readonly [Arg, ...Arg[]];
    if (name.kind !== "literal") return [use.doubt("word.dynamic", name)];
    const word = aliases.get(name.value) ?? name.value;
    const program = `${call.program} ${word}`;
    const number = commands.get(word);
    const globals = use.options.length === 0 ? call.globals : [...call.globals, ...use.options];
    if (number !== undefined)
      return this.#use(
        this.#table.model(number),
        { program, name, args: use.operands.slice(1), globals },
        around,
      );
    // After `--`, a word with a dash is no option any more.
    if (otherwise === null || /^-./.test(name.value)) return [use.doubt("operand.unknown", name, program)];
    return this.#use(this.#table.model(otherwise), { ...call, args: use.operands, globals }, around);
  }

  #compile(model: Model): Compiled {
    const known = this.#compiled.get(model);
    if (known !== undefined) return known;
    const { singleDash = false, abbreviates = false, strict = false, commands } = model;
    const compiled: Compiled = {
      local: model.local === true,
      does: model.does ?? [],
      subs: commands === undefined ? null : subCommands(model, commands),
      manner: { strict: strict || commands !== undefined, singleDash, abbreviates },
      options: optionTable(model),
      operands: { first: [], rest: null, last: [], here: false, ...model.arguments },
      tells: new Set(model.tells),
      first: (model.first ?? []).map(readerOf),
      also: (model.also ?? []).map(readerOf),
      reader: model.reader === undefined ? null : readerOf(model.reader),
    };
    this.#compiled.set(model, compiled);
    return compiled;
  }
}

const subCommands = (
  { aliases = {}, otherwise }: Model,
  commands: NonNullable<Model["commands"]>,
): SubCommands => ({
  commands: new Map(Object.entries(commands)),
  aliases: new Map(Object.entries(aliases)),
  otherwise: otherwise ?? null,
});

function addAll(found: FoundEffect[], readers: readonly UseReader[], use: Use, options: OptionTable): void {
  for (const reader of readers) for (const each of reader(use, options)) found.push(each);
}

function tellsOfItself(args: readonly Arg[], { tells }: Compiled): boolean {
  const only = args.length === 1 ? args[0] : undefined;
  return only?.kind === "literal" && tells.has(only.value);
}

/** Options such as `-C` change the folder, one after the other. */
function movedBy({ options }: ArgumentReading, around: UseContext): UseContext {
  let { folder } = around;
  for (const { spec, value } of options)
    if (spec.role === "in" && value !== null) folder = around.place(value, folder);
  return folder === around.folder ? around : around.movedTo(folder);
}

function addOptionEffects(found: FoundEffect[], { options }: ArgumentReading, use: Use): void {
  for (const { spec, value, span, name } of options) {
    if (value !== null && spec.role !== "command") found.push(...valueEffects(spec.role, value, use));
    if (spec.fixed !== null) found.push({ ...fixedEffect(spec.fixed, use.folder, name), span });
  }
}

/** The use already has the folder that these options lead to. */
const valueEffects = (role: Exclude<Role, "command">, value: Arg, use: Use): readonly FoundEffect[] =>
  role === "in" ? [{ kind: "read", path: use.folder, span: value.span }] : roleEffects(role, value, use);

const RECURSIVE = new Set(["-r", "-R", "--recursive"]);
const FORCED = new Set(["-f", "--force"]);

function addOperandEffects(
  found: FoundEffect[],
  table: OperandTable,
  { reading: { options, operands }, use }: { readonly reading: ArgumentReading; readonly use: Use },
): void {
  const turned =
    options.length === 0 ? null : (options.findLast(({ spec }) => spec.turns !== null)?.spec.turns ?? null);
  if (operands.length === 0) {
    if (table.here) found.push(...hereEffects(table, turned, use));
    return;
  }
  const roles = rolesFor(table, operands.length, options);
  const weight = weightOf(options);
  for (let index = 0; index < operands.length; index += 1) {
    const arg = operands[index] as Arg;
    const role = roleOfOperand(roleAt(roles, index), turned);
    if (role === "command") {
      found.push(...use.command(operands.slice(index)));
      return;
    }
    if (role === null) found.push(use.doubt("operand.unknown", arg));
    else for (const each of roleEffects(role, arg, use, weight)) found.push(each);
    if (role === "check" && turned === "write") found.push(...roleEffects(turned, arg, use, weight));
  }
}

function weightOf(options: ArgumentReading["options"]): Force {
  if (options.length === 0) return LIGHT;
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  return { forced: has(FORCED), recursive: has(RECURSIVE) };
}

/** Only file roles can be turned; the code of a checked file runs all the same. */
const roleOfOperand = (role: Role | null, turned: Role | null): Role | null =>
  turned !== null && (role === "read" || role === "write") ? turned : role;

function hereEffects(table: OperandTable, turned: Role | null, use: Use): readonly FoundEffect[] {
  const role = roleOfOperand(table.last.at(-1) ?? table.rest ?? table.first.at(-1) ?? "read", turned);
  const here: Arg = { kind: "literal", value: ".", span: use.span };
  if (role === null || role === "command") return [];
  const found = roleEffects(role, here, use);
  return role === "check" && turned === "write" ? [...found, ...roleEffects(turned, here, use)] : found;
}

interface OperandTable {
  readonly first: readonly Role[];
  /** Role of any number of operands between the first and the last ones. */
  readonly rest: Role | null;
  readonly last: readonly Role[];
  /** Without operands the program works on the current folder. */
  readonly here: boolean;
}

/** The roles of a known number of operands. */
interface Roles extends Pick<OperandTable, "first" | "rest" | "last"> {
  /** Index of the first operand that has one of the last roles. */
  readonly lastFrom: number;
}

/** `pattern` is dropped where an option gave it. */
function rolesFor(table: OperandTable, count: number, options: ArgumentReading["options"]): Roles {
  const patternGiven = options.some(({ spec }) => spec.role === "pattern");
  const first = patternGiven ? table.first.filter((role) => role !== "pattern") : table.first;
  const { rest, last } = table;
  const lastFrom = rest === null ? Number.MAX_SAFE_INTEGER : Math.max(first.length, count - last.length);
  return { first, rest, last, lastFrom };
}

/** The role of the operand at an index; null where none is left. */
function roleAt({ first, rest, last, lastFrom }: Roles, index: number): Role | null {
  if (index < first.length) return first[index] ?? null;
  return index >= lastFrom ? (last[index - lastFrom] ?? null) : rest;
}

/** All known programs by name. A model is parsed at its first use. */
export class ProgramTable {
  readonly #read = new Map<number, Model>();
  /** Models by the names looked up so far; a name without a model is looked up each time. */
  readonly #found = new Map<string, Model>();

  get names(): readonly string[] {
    return Object.keys(PROGRAMS);
  }

  find(program: string): Model | undefined {
    const known = this.#found.get(program);
    if (known !== undefined) return known;
    const number = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
    if (number === undefined) return undefined;
    const model = this.model(number);
    this.#found.set(program, model);
    return model;
  }

  model(number: number): Model {
    const known = this.#read.get(number);
    if (known !== undefined) return known;
    const model = JSON.parse(MODELS[number] as string) as Model;
    this.#read.set(number, model);
    return model;
  }
}

/** Programs that run other programs, or any code. */
export const RUNNING_OTHERS: ReadonlySet<string> = new Set(RUN_OTHERS);
/** Programs whose arguments are another command. */
export const RUNNING_WHAT_FOLLOWS: ReadonlySet<string> = new Set(RUN_WHAT_FOLLOWS);
