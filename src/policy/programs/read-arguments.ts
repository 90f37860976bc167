import type { Doubt } from "../effects/effect.ts";
import { fixedEffect, roleEffects, type Weight } from "./argument-roles.ts";
import {
  type Arg,
  type Call,
  type Found,
  type GivenOption,
  makeUse,
  type Model,
  type OptionSpec,
  optionTable,
  type OptionTable,
  type Role,
  roleOf,
  type Surroundings,
  UNKNOWN,
  type Use,
} from "./program-model.ts";

/** A model whose small tables are read. */
interface Compiled {
  readonly manner: Manner;
  readonly options: OptionTable;
  readonly operands: OperandTable;
  readonly tells: ReadonlySet<string>;
}

/** The table of programs, its small languages read when first used. */
export class Models {
  private readonly compiled = new Map<Model, Compiled>();
  private readonly table: ReadonlyMap<string, Model>;

  constructor(table: ReadonlyMap<string, Model>) {
    this.table = table;
  }

  find(program: string): Model | undefined {
    return this.table.get(program);
  }

  /** Everything that this use does. `words` begins with the program's name. */
  effects(model: Model, words: readonly [Arg, ...Arg[]], around: Surroundings): readonly Found[] {
    const [name, ...args] = words;
    return this.use(model, { program: baseName(name.value), name, args, globals: [] }, around);
  }

  /** Reads every table there is; a mistake in one throws. */
  compileAll(models: Iterable<Model> = this.table.values()): void {
    for (const model of models) {
      this.compile(model);
      this.compileAll(Object.values(model.commands ?? {}));
      if (model.otherwise !== undefined) this.compileAll([model.otherwise]);
    }
  }

  private use(model: Model, call: Call, around: Surroundings): readonly Found[] {
    const compiled = this.compile(model);
    if (tellsOfItself(call.args, compiled))
      return model.local === true ? [fixedEffect("settings", around.folder, call.program)] : [];
    if (model.reads !== undefined)
      return model.reads(makeUse(call, { options: [], operands: call.args }, around));
    const reading = readArguments(call.args, compiled.options, compiled.manner);
    const use = makeUse(call, reading, movedBy(reading, around));
    const misread = reading.misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what));
    const found = [...misread, ...optionEffects(reading, use)];
    if (model.commands !== undefined && reading.operands.length > 0)
      return [...found, ...this.sub(model, use, { call, around: { ...around, folder: use.folder } })];
    return [
      ...found,
      ...operandEffects(compiled.operands, reading, use),
      ...(model.fixed ?? []).map((fixed) => fixedEffect(fixed, use.folder, use.program)),
      ...(model.also?.(use) ?? []),
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
    const model = Object.hasOwn(commands, word) ? commands[word] : undefined;
    if (model === undefined && otherwise !== undefined)
      return this.use(
        otherwise,
        { ...call, args: use.operands, globals: [...call.globals, ...use.options] },
        around,
      );
    if (model === undefined) return [use.doubt("operand.unknown", name, program)];
    return this.use(model, { program, name, args, globals: [...call.globals, ...use.options] }, around);
  }

  private compile(model: Model): Compiled {
    const known = this.compiled.get(model);
    if (known !== undefined) return known;
    const { singleDash = false, abbreviates = false, strict = false } = model;
    const compiled = {
      manner: { strict: strict || model.commands !== undefined, singleDash, abbreviates },
      options: optionTable(model),
      operands: operandTable(model.operands ?? ""),
      tells: new Set((model.tells ?? "--version --help").split(/\s+/).filter((word) => word !== "")),
    };
    this.compiled.set(model, compiled);
    return compiled;
  }
}

const tellsOfItself = ([only, ...more]: readonly Arg[], { tells }: Compiled): boolean =>
  more.length === 0 && only?.kind === "literal" && tells.has(only.value);

const baseName = (program: string): string => program.slice(program.lastIndexOf("/") + 1);

/** Options like `-C` move where it works, one after the other. */
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

/** Folders of options have moved the use already: each was meant from the one before it. */
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

/** Only what names a file can be turned; of what is checked, the code runs all the same. */
const roleOfOperand = (role: Role | null, turned: Role | null): Role | null =>
  turned !== null && (role === "read" || role === "write") ? turned : role;

function hereEffects(table: OperandTable, turned: Role | null, use: Use): readonly Found[] {
  const role = roleOfOperand(table.last.at(-1) ?? table.many ?? table.first.at(-1) ?? "read", turned);
  const here: Arg = { kind: "literal", value: ".", span: use.span };
  if (role === null || role === "command") return [];
  const found = roleEffects(role, here, use, LIGHT);
  return role === "check" && turned === "write"
    ? [...found, ...roleEffects(turned, here, use, LIGHT)]
    : found;
}

interface OperandTable {
  readonly first: readonly Role[];
  /** Any number of these between the first and the last ones. */
  readonly many: Role | null;
  readonly last: readonly Role[];
  /** Without operands it works on the current folder. */
  readonly here: boolean;
}

/** Reads the small language of `Model.operands`. */
function operandTable(text: string): OperandTable {
  const [roles = "", here] = text.split("|");
  const first: Role[] = [];
  const last: Role[] = [];
  let many: Role | null = null;
  for (const token of roles.split(/\s+/)) {
    if (token === "") continue;
    const role = roleOf(token.replace(/[*?]$/, ""), text);
    if (token.endsWith("*")) many = role;
    else (many === null ? first : last).push(role);
  }
  return { first, many, last, here: here === "." };
}

/** The role of each operand; null where the table has none left. `pattern` is dropped where an option gave it. */
function rolesFor(table: OperandTable, count: number, patternGiven: boolean): readonly (Role | null)[] {
  const first = patternGiven ? table.first.filter((role) => role !== "pattern") : table.first;
  const lastFrom =
    table.many === null ? Number.MAX_SAFE_INTEGER : Math.max(first.length, count - table.last.length);
  return Array.from({ length: count }, (_, index) => {
    if (index < first.length) return first[index] ?? null;
    return index >= lastFrom ? (table.last[index - lastFrom] ?? null) : table.many;
  });
}

interface Misread {
  readonly doubt: Doubt;
  readonly arg: Arg;
  readonly what: string;
}

interface Given extends GivenOption {
  readonly spec: OptionSpec;
}

export interface Reading {
  readonly options: readonly Given[];
  readonly operands: readonly Arg[];
  readonly misread: readonly Misread[];
}

export interface Manner {
  readonly strict: boolean;
  readonly singleDash: boolean;
  readonly abbreviates: boolean;
}

/** Whatever files there are, each word that `--include=*.ts` becomes is that option again. */
const NAMED = /^--[a-z][a-z-]*=/;

/** Tells options from operands, as getopt does. Linear; every argument ends as an option, a value, an operand or misread. */
export function readArguments(args: readonly Arg[], table: OptionTable, manner: Manner): Reading {
  return new Reader(args, table, manner).read();
}

class Reader {
  private readonly options: Given[] = [];
  private readonly operands: Arg[] = [];
  private readonly misread: Misread[] = [];
  private at = 0;
  private readonly args: readonly Arg[];
  private readonly table: OptionTable;
  private readonly manner: Manner;

  constructor(args: readonly Arg[], table: OptionTable, manner: Manner) {
    this.args = args;
    this.table = table;
    this.manner = manner;
  }

  read(): Reading {
    while (this.at < this.args.length) {
      const arg = this.args[this.at++] as Arg;
      if (arg.value === "--" && arg.kind === "literal") {
        this.operands.push(...this.args.slice(this.at));
        break;
      }
      if (arg.value.startsWith("-") && arg.value.length > 1) this.option(arg);
      else {
        this.operand(arg);
        if (this.manner.strict) {
          this.operands.push(...this.args.slice(this.at));
          break;
        }
      }
    }
    return { options: this.options, operands: this.operands, misread: this.misread };
  }

  private operand(arg: Arg): void {
    this.operands.push(arg);
    if (arg.kind === "literal") return;
    if (this.table.tame) return this.anything(arg);
    const open = arg.value.charAt(0);
    if (arg.kind === "dynamic" && (open === UNKNOWN || arg.loose === true)) this.doubt("word.dynamic", arg);
    else if (arg.kind === "glob" && (open === "*" || open === "?" || open === "["))
      this.doubt("word.leading-glob", arg);
  }

  /** `*` alone finds every file, however it is called; `*.ts` only those that are meant. */
  private anything(arg: Arg): void {
    if (arg.kind === "glob" && /^[*?]+$/.test(arg.value)) this.doubt("word.bare-glob", arg);
  }

  private option(arg: Arg): void {
    const { value } = arg;
    if (arg.kind === "glob" && !(this.table.tame && NAMED.test(value)))
      return this.doubt("word.leading-glob", arg);
    const equals = value.indexOf("=");
    const name = equals === -1 ? value : value.slice(0, equals);
    if (name.includes(UNKNOWN)) return this.doubt("word.dynamic", arg);
    if (value.startsWith("--") || this.manner.singleDash) {
      const spec = this.find(name);
      if (spec !== undefined) return this.long(spec, arg, equals === -1 ? null : value.slice(equals + 1));
      if (value.startsWith("--") || value.length > 2) return this.doubt("option.unknown", arg, name);
    }
    this.bundle(arg);
  }

  private find(name: string): OptionSpec | undefined {
    const { named } = this.table;
    const exact = named.get(name);
    if (exact !== undefined) return exact;
    if (this.manner.singleDash) return named.get(name.startsWith("--") ? name.slice(1) : `-${name}`);
    if (!this.manner.abbreviates) return undefined;
    const fits = [...named.values()].filter((spec) => spec.name.startsWith(name));
    return fits.length === 1 ? fits[0] : undefined;
  }

  private long(spec: OptionSpec, arg: Arg, attached: string | null): void {
    if (attached === null)
      return spec.takes === "value" ? this.valued(spec, arg) : this.give(spec, arg, null);
    if (spec.takes === "nothing") return this.doubt("option.unknown", arg, `${spec.name} with a value`);
    this.give(spec, arg, { ...arg, value: attached });
  }

  /** `-abc`, `-n5`, `-ofile`, `-20`. */
  private bundle(arg: Arg): void {
    const { value } = arg;
    if (this.table.numbers && /^-\d+$/.test(value)) return;
    for (let at = 1; at < value.length; at += 1) {
      const spec = this.table.named.get(`-${value.charAt(at)}`);
      if (spec === undefined) return this.doubt("option.unknown", arg, `-${value.charAt(at)}`);
      if (spec.takes === "nothing") {
        this.give(spec, arg, null);
        continue;
      }
      const rest = value.slice(at + 1);
      if (rest !== "") return this.give(spec, arg, { ...arg, value: rest });
      return spec.takes === "value" ? this.valued(spec, arg) : this.give(spec, arg, null);
    }
  }

  private valued(spec: OptionSpec, arg: Arg): void {
    const value = this.args[this.at];
    if (value === undefined) return this.doubt("option.unknown", arg, `${spec.name} without its value`);
    this.at += 1;
    // A pattern may become several words, and the second one is then no longer its value.
    if (value.kind === "glob") this.doubt("word.leading-glob", value);
    this.give(spec, arg, value);
  }

  private give(spec: OptionSpec, arg: Arg, value: Arg | null): void {
    // Another word of it could be an option.
    if (value?.loose === true && !this.table.tame) this.doubt("word.dynamic", value);
    this.options.push({ name: spec.name, value, span: arg.span, spec });
  }

  private doubt(doubt: Doubt, arg: Arg, what: string = arg.value): void {
    this.misread.push({ doubt, arg, what });
  }
}
