import { EXIT, HarnessError } from "../../core/errors.ts";
import { shellText } from "../../policy/shell/quote.ts";

export interface Given {
  /** What stands before `--`. */
  readonly flags: readonly string[];
  readonly dashes: boolean;
  /** The command line behind it; undefined where there is none. */
  readonly text: string | undefined;
}

/** One word behind `--` is a shell line; several are one command with its arguments. */
export function givenCommand(argv: readonly string[]): Given {
  const dashes = argv.indexOf("--");
  if (dashes === -1) return { flags: argv, dashes: false, text: undefined };
  const words = argv.slice(dashes + 1);
  const text = words.length === 0 ? undefined : words.length === 1 ? words[0] : shellText(words);
  return { flags: argv.slice(0, dashes), dashes: true, text };
}

export const noCommand = (example: string): HarnessError =>
  new HarnessError(EXIT.usage, "there is no command", example);
