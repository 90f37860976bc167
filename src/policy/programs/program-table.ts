import type { Model } from "./program-model.ts";
import type { ModelTable } from "./program-models.ts";
import { MODELS, PROGRAMS, RUN_OTHERS, RUN_WHAT_FOLLOWS } from "./programs.generated.ts";

/** All known programs by name. A model is parsed at its first use. */
export class ProgramTable implements ModelTable {
  private readonly read = new Map<number, Model>();
  /** Models by the names looked up so far; a name without a model is looked up each time. */
  private readonly found = new Map<string, Model>();

  get names(): readonly string[] {
    return Object.keys(PROGRAMS);
  }

  find(program: string): Model | undefined {
    const known = this.found.get(program);
    if (known !== undefined) return known;
    const number = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
    if (number === undefined) return undefined;
    const model = this.model(number);
    this.found.set(program, model);
    return model;
  }

  model(number: number): Model {
    const known = this.read.get(number);
    if (known !== undefined) return known;
    const model = JSON.parse(MODELS[number] as string) as Model;
    this.read.set(number, model);
    return model;
  }
}

/** Programs that run other programs, or any code. */
export const RUNNING_OTHERS: ReadonlySet<string> = new Set(RUN_OTHERS);
/** Programs whose arguments are another command. */
export const RUNNING_WHAT_FOLLOWS: ReadonlySet<string> = new Set(RUN_WHAT_FOLLOWS);
