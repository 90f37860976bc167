/** Applies filters as Qdrant documents them. An unknown condition is an error, never a match. */

export interface StoredPoint {
  readonly id: string;
  payload: Readonly<Record<string, unknown>>;
  /** Named vectors; dense ones as stored. */
  readonly vectors: Map<string, Float32Array | SparseVector>;
}

export interface SparseVector {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

type Condition = Readonly<Record<string, unknown>>;
type Several = Condition | readonly Condition[] | null | undefined;

export interface PointFilter {
  readonly must?: Several;
  readonly must_not?: Several;
  readonly should?: Several;
}

class UnknownCondition extends Error {}

export function passes(point: StoredPoint, filter: PointFilter | null | undefined): boolean {
  if (filter === null || filter === undefined) return true;
  const { must, must_not, should, ...others } = filter;
  if (Object.keys(others).length > 0) throw new UnknownCondition(Object.keys(others).join(", "));
  const any = listOf(should);
  return (
    listOf(must).every((condition) => holds(point, condition)) &&
    !listOf(must_not).some((condition) => holds(point, condition)) &&
    (any.length === 0 || any.some((condition) => holds(point, condition)))
  );
}

/** Each key in the filter, and whether it is used in a match or a range. */
export function keysOf(
  filter: PointFilter | null | undefined,
): readonly (readonly [string, "keyword" | "integer"])[] {
  const { must, must_not, should } = filter ?? {};
  return [must, must_not, should].flatMap(listOf).flatMap((condition) => {
    const { key, match } = condition;
    if (typeof key === "string") return [[key, match === undefined ? "integer" : "keyword"] as const];
    return "has_id" in condition || "has_vector" in condition ? [] : keysOf(condition);
  });
}

const listOf = (several: Several): readonly Condition[] =>
  several === null || several === undefined
    ? []
    : Array.isArray(several)
      ? (several as readonly Condition[])
      : [several as Condition];

function holds(point: StoredPoint, condition: Condition): boolean {
  const { has_id, has_vector, key, match, range } = condition;
  if (Array.isArray(has_id)) return has_id.includes(point.id);
  if (typeof has_vector === "string") return point.vectors.has(has_vector);
  if (typeof key === "string") {
    const found = point.payload[key];
    const values: readonly unknown[] = Array.isArray(found) ? found : [found];
    if (match !== undefined) return values.some((value) => matches(value, match as Condition));
    if (range !== undefined) return values.some((value) => within(value, range as Condition));
  }
  if ("must" in condition || "must_not" in condition || "should" in condition)
    return passes(point, condition);
  throw new UnknownCondition(JSON.stringify(condition));
}

function matches(value: unknown, match: Condition): boolean {
  if ("value" in match) return value === match["value"];
  if (Array.isArray(match["any"])) return match["any"].includes(value);
  throw new UnknownCondition(JSON.stringify(match));
}

function within(value: unknown, range: Condition): boolean {
  if (typeof value !== "number") return false;
  return Object.entries(range).every(([bound, than]) => {
    switch (bound) {
      case "lt":
        return value < Number(than);
      case "lte":
        return value <= Number(than);
      case "gt":
        return value > Number(than);
      case "gte":
        return value >= Number(than);
      default:
        throw new UnknownCondition(bound);
    }
  });
}
