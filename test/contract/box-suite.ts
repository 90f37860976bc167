import type { Open } from "./box-words.ts";

export interface Suite {
  readonly open: Open;
  readonly of: (what: string) => string;
  readonly skip: string | false;
  /** The boxes work on a copy of the folder. */
  readonly copies: boolean;
}
