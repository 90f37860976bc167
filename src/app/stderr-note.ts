import { visibleWhole } from "../core/visible.ts";
import { stderr } from "../render/tty/output.ts";

/** What a person should know and need not act on. */
export const noteTo =
  (quiet: boolean) =>
  (text: string): void => {
    if (!quiet) stderr.write(`note: ${visibleWhole(text)}\n`);
  };
