import { shellText } from "../../policy/shell/quote.ts";

/** What is no longer than a line is written out. */
const LONGEST = 120;

/** A command of `harness policy` for the judged text, to be typed next. */
export function nextCommand(
  command: "allow" | "check --explain",
  text: string,
  { cwd }: { readonly cwd?: string | undefined },
): string {
  const place = cwd === undefined ? "" : ` --cwd ${shellText([cwd])}`;
  const plain = text.length <= LONGEST && /^[\u0020-\u007E]*$/.test(text);
  return `harness policy ${command}${place} -- ${plain ? shellText([text]) : "CMD"}`;
}
