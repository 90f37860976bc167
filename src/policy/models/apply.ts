import type { Arg, Found, Model, Role, Use } from "./model.ts";
import { operandTable, type OperandTable, rolesFor } from "./operands.ts";
import { optionTable, type OptionTable } from "./options.ts";
import { type Manner, readArguments, type Reading } from "./reading.ts";
import { fixedEffect, roleEffects, type Weight } from "./roles.ts";
import { type Call, makeUse, type Surroundings } from "./use.ts";

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
