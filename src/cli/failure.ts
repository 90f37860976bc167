import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { inertJson, visible } from "../core/visible.ts";
import { adviceFor } from "./advice.ts";
import { stderr, stdout, styleText } from "../render/tty/output.ts";

export interface Failure {
  readonly exit: number;
  /** Empty when the command has already said what there is to say. */
  readonly message: string;
  readonly remedy: string;
}

/** What to print and how to exit for whatever ended a command. */
export function describeFailure(thrown: unknown, words: readonly string[]): Failure {
  if (thrown instanceof SuppressedError) return describeFailure(firstOf(thrown), words);
  if (thrown instanceof HarnessError)
    return { exit: thrown.exit, message: thrown.message, remedy: thrown.remedy };
  const exit = oclifExit(thrown);
  if (exit === undefined) {
    const detail = thrown instanceof Error && process.env["HARNESS_DEBUG"] ? thrown.stack : reasonOf(thrown);
    return { exit: EXIT.failed, message: `internal error: ${detail}`, remedy: "HARNESS_DEBUG=1 shows where" };
  }
  if (thrown instanceof Error && "code" in thrown && thrown.code === "EEXIT")
    return { exit, message: "", remedy: "" };
  return { exit: EXIT.usage, ...adviceFor(firstParagraph(reasonOf(thrown)), words) };
}

/** Of a failure and another one while things were put away behind it; one that a person can act on counts before others. */
function firstOf({ suppressed, error }: SuppressedError): unknown {
  const known = suppressed instanceof HarnessError || suppressed instanceof SuppressedError;
  return known || !(error instanceof HarnessError) ? suppressed : error;
}

export function renderFailure({ exit, message, remedy }: Failure, json: boolean): void {
  if (json) {
    stdout.write(`${inertJson({ error: { message, remedy, exit_code: exit } })}\n`);
    return;
  }
  const head = styleText("red", "error:", { stream: stderr });
  const next =
    remedy === "" ? "" : `  ${styleText("bold", "next:", { stream: stderr })} ${visible(remedy)}\n`;
  stderr.write(`${head} ${visible(message)}\n${next}`);
}

/** oclif marks its own errors, usage ones among them, with the code to exit with. */
function oclifExit(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("oclif" in thrown)) return undefined;
  const { oclif } = thrown;
  if (typeof oclif !== "object" || oclif === null || !("exit" in oclif)) return undefined;
  return typeof oclif.exit === "number" ? oclif.exit : undefined;
}

/** oclif adds its advice below a blank line or as `See more help with`; ours is the remedy. Nor needs one error a headline. */
const firstParagraph = (text: string): string =>
  text
    .replace(/\n*See more help with.*$/s, "")
    .replace(/^The following errors? occurred:\n\s*/, "")
    .replaceAll(/Missing required flag (?=\w)/g, "Missing required flag --")
    .trim();
