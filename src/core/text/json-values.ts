/** Values of untrusted JSON: a value of the wrong kind counts as absent. */

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asFields = (value: unknown): Fields | undefined => (isFields(value) ? value : undefined);

/** Empty for a value that is not an object. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A text that is not empty. */
export const asText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** The value of a JSON text; undefined, which JSON cannot express, when the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The object in a JSON text, with or without a byte order mark; an empty one when it has none. */
export const fieldsIn = (text: string): Fields => fieldsOf(parsedJson(text.replace(/^\uFEFF/, "")));
