import { isRecord, type OfferedTool } from "./reading.ts";

const PREFIX = /^(?:functions?|tools?|default_api)[.:]/;
const SUFFIX = /(?::\d+|\.call)$/;
const LONGEST = 80;

/** The names and schemas of one request. */
export class OfferedTools {
  readonly names: readonly string[];
  readonly #schemas = new Map<string, unknown>();
  readonly #folded = new Map<string, string | null>();

  constructor(tools: readonly OfferedTool[]) {
    for (const tool of tools) {
      const { name, schema } = described(tool);
      if (name === "" || this.#schemas.has(name)) continue;
      this.#schemas.set(name, schema);
      const key = fold(name);
      this.#folded.set(key, this.#folded.has(key) ? null : name);
    }
    this.names = [...this.#schemas.keys()];
  }

  /** The offered name that is meant; undefined when none is, or when two could be. */
  resolve(written: string): string | undefined {
    if (written.length > LONGEST) return undefined;
    if (this.#schemas.has(written)) return written;
    const bare = written.trim().replace(PREFIX, "").replace(SUFFIX, "");
    if (this.#schemas.has(bare)) return bare;
    return this.#folded.get(fold(bare)) ?? undefined;
  }

  schema(name: string): unknown {
    return this.#schemas.get(name);
  }

  /** An offered name that this one is a slip of. */
  near(written: string): string | undefined {
    if (written.length > LONGEST || written.length < 3) return undefined;
    const bare = fold(written.replace(PREFIX, "").replace(SUFFIX, ""));
    return this.names.find((name) => within(bare, fold(name), name.length > 5 ? 2 : 1));
  }

  /** Whether this is the beginning of an offered name. */
  begins(written: string): boolean {
    const bare = written.replace(PREFIX, "");
    return this.names.some((name) => name.startsWith(bare) || `functions.${name}`.startsWith(written));
  }
}

function described(tool: OfferedTool): { name: string; schema: unknown } {
  if (typeof tool === "string") return { name: tool, schema: undefined };
  const inner = isRecord(tool.function) ? tool.function : undefined;
  const name = tool.name ?? inner?.name;
  return {
    name: typeof name === "string" ? name : "",
    schema: tool.parameters ?? tool.schema ?? inner?.parameters,
  };
}

const fold = (name: string): string => name.replaceAll(/[-_\s]/g, "").toLowerCase();

/** Whether at most `most` letters are added, lost, changed or swapped. */
function within(one: string, other: string, most: number): boolean {
  if (Math.abs(one.length - other.length) > most) return false;
  let older: number[] = [];
  let old = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      let best = Math.min((old[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (old[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        best = Math.min(best, (older[j - 2] ?? 0) + 1);
      row.push(best);
    }
    older = old;
    old = row;
  }
  return (old[other.length] ?? most + 1) <= most;
}
