import type { Mode } from "../../core/decision.ts";
import { shellText } from "../../policy/shell/quote.ts";

/** What is no longer than a line is written out. */
const LONGEST = 120;

/** A command of `harness policy` for the judged text, to be typed next. */
export function nextCommand(
  command: "allow" | "check --explain",
  text: string,
  { mode, cwd }: { readonly mode?: Mode; readonly cwd?: string | undefined },
): string {
  const flags = [
    ...(mode === undefined ? [] : ["--mode", mode]),
    ...(cwd === undefined ? [] : ["--cwd", cwd]),
  ];
  const plain = text.length <= LONGEST && /^[\u0020-\u007E]*$/.test(text);
  return `harness policy ${[command, ...flags.map((flag) => shellText([flag]))].join(" ")} -- ${plain ? shellText([text]) : "CMD"}`;
}
