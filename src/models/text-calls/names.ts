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

/** Whether at most `most` letters are added, lost or changed, or two neighbours swapped. */
function within(one: string, other: string, most: number): boolean {
  if (one === other) return true;
  if (most === 0 || Math.abs(one.length - other.length) > most) return false;
  let at = 0;
  while (one[at] === other[at]) at += 1;
  const [a, b] = [one.slice(at), other.slice(at)];
  const swapped = a.length > 1 && a[0] === b[1] && a[1] === b[0] && within(a.slice(2), b.slice(2), most - 1);
  return (
    swapped ||
    within(a.slice(1), b.slice(1), most - 1) ||
    within(a.slice(1), b, most - 1) ||
    within(a, b.slice(1), most - 1)
  );
}
