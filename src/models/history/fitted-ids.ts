import { createHash } from "node:crypto";

/**
 * The id as a server takes it: itself where it fits, else one made of it, always the same and never the same for two.
 * Ids come from other servers and from calls in prose; histories are sent to whatever model is chosen next.
 */
export function fittedId(id: string, shape: IdShape): string {
  if (shape.fits.test(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex");
  return `${shape.prefix}${digest.slice(0, shape.length - shape.prefix.length)}`;
}

export interface IdShape {
  readonly fits: RegExp;
  readonly prefix: string;
  readonly length: number;
}

/** What OpenAI and Anthropic take; the first allows 40 characters, the second these characters only. */
export const USUAL_ID: IdShape = { fits: /^[\w-]{1,40}$/, prefix: "call_", length: 29 };

/** Mistral's templates refuse every other. */
export const MISTRAL_ID: IdShape = { fits: /^[A-Za-z0-9]{9}$/, prefix: "", length: 9 };
