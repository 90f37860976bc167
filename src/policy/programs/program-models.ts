import { fixedEffect, roleEffects, type Weight } from "./argument-roles.ts";
import { readerOf } from "./program-readers.ts";
import { optionTable } from "./option-groups.ts";
import {
  type Arg,
  type Call,
  type Found,
  makeUse,
  type Model,
  type OptionTable,
  type Reader,
  type Role,
  type Surroundings,
  type Use,
} from "./program-model.ts";
import { type Manner, readArguments, type Reading } from "./read-arguments.ts";

/** Source of models: by program name, or by number. */
export interface ModelTable {
  readonly names: Iterable<string>;
  find(program: string): Model | undefined;
  model(number: number): Model;
}

/** A model with its options parsed and its readers resolved. */
interface Compiled {
  readonly manner: Manner;
  readonly options: OptionTable;
  readonly operands: OperandTable;
  readonly tells: ReadonlySet<string>;
  readonly first: readonly Reader[];
  readonly also: readonly Reader[];
  readonly reader: Reader | null;
}

/** The models of programs, each prepared at its first use. */
export class Models {
  private readonly compiled = new Map<Model, Compiled>();
  private readonly table: ModelTable;

  constructor(table: ModelTable) {
    this.table = table;
  }

  find(program: string): Model | undefined {
    return this.table.find(program);
  }

  /** All effects of this use. `words` starts with the program's name. */
  effects(model: Model, words: readonly [Arg, ...Arg[]], around: Surroundings): readonly Found[] {
    const [name, ...args] = words;
    return this.use(model, { program: baseName(name.value), name, args, globals: [] }, around);
  }

  /** Prepares every model; throws for a mistake in one. */
  compileAll(): void {
    const compile = (model: Model): void => {
      if (this.compiled.has(model)) return;
      this.compile(model);
      for (const number of Object.values(model.commands ?? {})) compile(this.table.model(number));
      if (model.otherwise !== undefined) compile(this.table.model(model.otherwise));
    };
    for (const name of this.table.names) {
      const model = this.table.find(name);
      if (model !== undefined) compile(model);
    }
  }

  private use(model: Model, call: Call, around: Surroundings): readonly Found[] {
    const compiled = this.compile(model);
    if (tellsOfItself(call.args, compiled))
      return model.local === true ? [fixedEffect("settings", around.folder, call.program)] : [];
    const all = (readers: readonly Reader[], use: Use): readonly Found[] =>
      readers.flatMap((each) => each(use, compiled.options));
    if (compiled.reader !== null) {
      const none = makeUse(call, { options: [], operands: [] }, around);
      const use = makeUse(call, { options: [], operands: call.args }, around);
      return [...all(compiled.first, none), ...compiled.reader(use, compiled.options)];
    }
    const reading = readArguments(call.args, compiled.options, compiled.manner);
    const use = makeUse(call, reading, movedBy(reading, around));
    const misread = reading.misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what));
    const found = [...misread, ...optionEffects(reading, use)];
    if (model.commands !== undefined && reading.operands.length > 0)
      return [...found, ...this.sub(model, use, { call, around: { ...around, folder: use.folder } })];
    return [
      ...found,
      ...operandEffects(compiled.operands, reading, use),
      ...(model.does ?? []).map((fixed) => fixedEffect(fixed, use.folder, use.program)),
      ...all(compiled.first, use),
      ...all(compiled.also, use),
    ];
  }

  private sub(
    { commands = {}, aliases = {}, otherwise }: Model,
    use: Use,
    { call, around }: { readonly call: Call; readonly around: Surroundings },
  ): readonly Found[] {
    const [name, ...args] = use.operands as readonly [Arg, ...Arg[]];
    if (name.kind !== "literal") return [use.doubt("word.dynamic", name)];
    const word = Object.hasOwn(aliases, name.value) ? (aliases[name.value] ?? "") : name.value;
    const program = `${call.program} ${word}`;
    const number = Object.hasOwn(commands, word) ? commands[word] : undefined;
    const globals = [...call.globals, ...use.options];
    if (number !== undefined)
      return this.use(this.table.model(number), { program, name, args, globals }, around);
    if (otherwise === undefined) return [use.doubt("operand.unknown", name, program)];
    return this.use(this.table.model(otherwise), { ...call, args: use.operands, globals }, around);
  }

  private compile(model: Model): Compiled {
    const known = this.compiled.get(model);
    if (known !== undefined) return known;
    const { singleDash = false, abbreviates = false, strict = false } = model;
    const compiled = {
      manner: { strict: strict || model.commands !== undefined, singleDash, abbreviates },
      options: optionTable(model),
      operands: { first: [], rest: null, last: [], here: false, ...model.arguments },
      tells: new Set(model.tells),
      first: (model.first ?? []).map(readerOf),
      also: (model.also ?? []).map(readerOf),
      reader: model.reader === undefined ? null : readerOf(model.reader),
    };
    this.compiled.set(model, compiled);
    return compiled;
  }
}

const tellsOfItself = ([only, ...more]: readonly Arg[], { tells }: Compiled): boolean =>
  more.length === 0 && only?.kind === "literal" && tells.has(only.value);

const baseName = (program: string): string => program.slice(program.lastIndexOf("/") + 1);

/** Options such as `-C` change the folder, one after the other. */
function movedBy({ options }: Reading, around: Surroundings): Surroundings {
  let { folder } = around;
  for (const { spec, value } of options)
    if (spec.role === "in" && value !== null) folder = around.place(value, folder);
  return folder === around.folder ? around : { ...around, folder };
}

function optionEffects({ options }: Reading, use: Use): readonly Found[] {
  return options.flatMap(({ spec, value, span, name }) => {
    const found = value === null || spec.role === "command" ? [] : givenEffects(spec.role, value, use);
    return spec.fixed === null ? found : [...found, { ...fixedEffect(spec.fixed, use.folder, name), span }];
  });
}

/** The use already has the folder that these options lead to. */
const givenEffects = (role: Exclude<Role, "command">, value: Arg, use: Use): readonly Found[] =>
  role === "in"
    ? [{ kind: "read", path: use.folder, span: value.span }]
    : roleEffects(role, value, use, LIGHT);

const LIGHT: Weight = { forced: false, recursive: false };
const RECURSIVE = new Set(["-r", "-R", "--recursive"]);
const FORCED = new Set(["-f", "--force"]);

function operandEffects(table: OperandTable, { options, operands }: Reading, use: Use): readonly Found[] {
  const roles = rolesFor(
    table,
    operands.length,
    options.some(({ spec }) => spec.role === "pattern"),
  );
  const turned = options.findLast(({ spec }) => spec.turns !== null)?.spec.turns ?? null;
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  const weight = { forced: has(FORCED), recursive: has(RECURSIVE) };
  const found: Found[] = [];
  for (const [index, arg] of operands.entries()) {
    const role = roleOfOperand(roles[index] ?? null, turned);
    if (role === "command") return [...found, ...use.command(operands.slice(index))];
    found.push(
      ...(role === null ? [use.doubt("operand.unknown", arg)] : roleEffects(role, arg, use, weight)),
    );
    if (role === "check" && turned === "write") found.push(...roleEffects(turned, arg, use, weight));
  }
  if (operands.length === 0 && table.here) found.push(...hereEffects(table, turned, use));
  return found;
}

/** Only file roles can be turned; the code of a checked file runs all the same. */
const roleOfOperand = (role: Role | null, turned: Role | null): Role | null =>
  turned !== null && (role === "read" || role === "write") ? turned : role;

function hereEffects(table: OperandTable, turned: Role | null, use: Use): readonly Found[] {
  const role = roleOfOperand(table.last.at(-1) ?? table.rest ?? table.first.at(-1) ?? "read", turned);
  const here: Arg = { kind: "literal", value: ".", span: use.span };
  if (role === null || role === "command") return [];
  const found = roleEffects(role, here, use, LIGHT);
  return role === "check" && turned === "write"
    ? [...found, ...roleEffects(turned, here, use, LIGHT)]
    : found;
}

interface OperandTable {
  readonly first: readonly Role[];
  /** Role of any number of operands between the first and the last ones. */
  readonly rest: Role | null;
  readonly last: readonly Role[];
  /** Without operands it works on the current folder. */
  readonly here: boolean;
}

/** The role of each operand; null where the table has none left. `pattern` is dropped where an option gave it. */
function rolesFor(table: OperandTable, count: number, patternGiven: boolean): readonly (Role | null)[] {
  const first = patternGiven ? table.first.filter((role) => role !== "pattern") : table.first;
  const lastFrom =
    table.rest === null ? Number.MAX_SAFE_INTEGER : Math.max(first.length, count - table.last.length);
  return Array.from({ length: count }, (_, index) => {
    if (index < first.length) return first[index] ?? null;
    return index >= lastFrom ? (table.last[index - lastFrom] ?? null) : table.rest;
  });
}
