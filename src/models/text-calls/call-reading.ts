/** What is offered: a name, or a name with the schema that types its arguments. */
export type OfferedTool =
  | string
  | {
      readonly name: string;
      readonly parameters?: unknown;
      readonly schema?: unknown;
      /** The envelope of some APIs. */
      readonly function?: { readonly name?: unknown; readonly parameters?: unknown };
    };

export interface WrittenCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface WrittenMalformed {
  /** As it was written, or empty when that cannot be told. */
  readonly name: string;
  readonly reason: string;
  /** Of one that could be read. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly missed?: WrittenMiss["missed"];
  readonly nearest?: readonly string[];
}

/** What is shaped as a call, and is none that may be run: the reply stays text, and the model is told. */
export interface WrittenMiss {
  readonly missed: "not_offered" | "not_alone" | "other_form";
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly reason: string;
  /** Offered names that may be meant, the likeliest first. */
  readonly nearest: readonly string[];
}

export interface Reading {
  readonly calls: readonly WrittenCall[];
  readonly malformed: readonly WrittenMalformed[];
  readonly missed: readonly WrittenMiss[];
  /** What the user sees: no calls, no thinking, no tokens. */
  readonly prose: string;
}

/** A call as one notation gives it, before names and types are looked at. */
export interface Found {
  readonly name: string;
  readonly args: unknown;
  /** Something had to be invented: a quote, a bracket, a tag, an escape. */
  readonly repaired: boolean;
  /** Why it can never be run. */
  readonly broken?: string;
}

/** What stands at a place: calls, text up to `end`, or something that the end of the input cuts. */
export type Outcome =
  | { readonly kind: "calls"; readonly found: readonly Found[]; readonly end: number; readonly cut: boolean }
  | { readonly kind: "text"; readonly end: number }
  | { readonly kind: "more" };

export const CUT = "the call was cut off; send it again, whole";
export const GARBLED = "this cannot be read without guessing; send the call again as valid JSON";
