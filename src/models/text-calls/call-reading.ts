/** An offered tool: a name, or a name with the schema that types its arguments. */
export type OfferedTool =
  | string
  | {
      readonly name: string;
      readonly parameters?: unknown;
      readonly schema?: unknown;
      /** Some APIs wrap the tool in this. */
      readonly function?: { readonly name?: unknown; readonly parameters?: unknown };
    };

export interface WrittenCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface WrittenMalformed {
  /** As written; empty if the name cannot be told. */
  readonly name: string;
  readonly reason: string;
  /** The arguments, if they could be read. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly missed?: WrittenMiss["missed"];
  readonly nearest?: readonly string[];
}

/** Text that looks like a call but may not be run: the reply stays text, and the model is told. */
export interface WrittenMiss {
  readonly missed: "not_offered" | "not_alone" | "other_form";
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly reason: string;
  /** Offered names that the model may mean, likeliest first. */
  readonly nearest: readonly string[];
}

export interface Reading {
  readonly calls: readonly WrittenCall[];
  readonly malformed: readonly WrittenMalformed[];
  readonly missed: readonly WrittenMiss[];
  /** The text for the user: no calls, no thinking, no tokens. */
  readonly prose: string;
}

/** A call as read from one notation, before names and types are checked. */
export interface Found {
  readonly name: string;
  readonly args: unknown;
  /** Reading it required inventing a quote, a bracket, a tag or an escape. */
  readonly repaired: boolean;
  /** Why the call can never be run. */
  readonly broken?: string;
}

/** What is at a place: calls, text up to `end`, or something that the end of the input cuts off. */
export type Outcome =
  | { readonly kind: "calls"; readonly found: readonly Found[]; readonly end: number; readonly cut: boolean }
  | { readonly kind: "text"; readonly end: number }
  | { readonly kind: "more" };

export const CUT = "the call was cut off; send it again, whole";
export const GARBLED = "this cannot be read without guessing; send the call again as valid JSON";
