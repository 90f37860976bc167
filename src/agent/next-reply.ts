import type { Hold } from "../core/model-provider.ts";

/** Where nobody says another: tools want the likely word, not the lively one. */
export const TOOL_TEMPERATURE = 0.2;
/** For one reply after a repetition, so that the model leaves its circle. */
const LIVELY = 0.8;

/** How the next reply is asked for: what the model did last decides, and holds for one request. */
export class NextReply {
  readonly #usual: number;
  #without: readonly string[] = [];
  #hold = false;
  #paths: Set<string> | undefined;

  constructor(temperature: number | null = null) {
    this.#usual = temperature ?? TOOL_TEMPERATURE;
  }

  /** For a subagent, whose replies are its own. */
  another(): NextReply {
    return new NextReply(this.#usual);
  }

  /** The last reply had no call that could be used: the next is held to calls, where the server can. */
  unusable(): void {
    this.#hold = true;
  }

  /** A call was broken up because it was repeated: its tool is left out once. */
  repeated(tool: string): void {
    this.#without = [...new Set([...this.#without, tool])];
  }

  /** Every file there is; undefined where that is not known, or no longer. */
  files(paths: readonly string[] | undefined): void {
    this.#paths = paths && new Set(paths);
  }

  /** A call changed something: a file of this path, which may be new, or what nobody can tell. */
  changed(path: string | undefined): void {
    if (path === undefined) this.#paths = undefined;
    else this.#paths?.add(path);
  }

  /** Of requests beside the loop, which are never held. */
  get temperature(): number {
    return this.#usual;
  }

  /** What is asked of the next reply; the one after it is asked for as usual again. */
  take(tools: readonly string[]): { readonly temperature: number; readonly hold: Hold } {
    const without = this.#without.filter((name) => tools.includes(name));
    const now = this.#hold;
    const repeated = this.#without.length > 0;
    this.#without = [];
    this.#hold = false;
    const temperature = repeated ? Math.max(this.#usual, LIVELY) : this.#usual;
    const hold = {
      ...(now ? { now } : {}),
      ...(this.#paths === undefined ? {} : { paths: [...this.#paths] }),
      ...(without.length === 0 ? {} : { without }),
    };
    return { temperature, hold };
  }
}
