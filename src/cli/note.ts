import { visible } from "../core/visible.ts";

/** What a person should know and need not act on. */
export const noteTo =
  (quiet: boolean) =>
  (text: string): void => {
    if (!quiet) process.stderr.write(`note: ${visible(text)}\n`);
  };
