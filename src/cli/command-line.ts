import { flush, run } from "@oclif/core";
import { describeFailure, renderFailure } from "../app/stderr-messages.ts";
import { packageRoot } from "../app/host.ts";
import { EXIT } from "../core/errors.ts";

/** Runs one command line to its exit code; every failure is printed here and nowhere else. */
export async function runCli(given: readonly string[]): Promise<void> {
  const words = routed(given);
  const options = beforeDashes(words);
  if (options.includes("--no-color")) withoutColor();
  process.once("uncaughtException", (thrown) => {
    renderFailure(describeFailure(thrown, options), options.includes("--json"));
    void recorded(thrown, EXIT.failed).finally(() => process.exit(EXIT.failed));
  });
  try {
    await run([...words], { root: packageRoot });
    await flush();
  } catch (thrown) {
    const failure = describeFailure(thrown, options);
    if (failure.message !== "") renderFailure(failure, options.includes("--json"));
    process.exitCode = failure.exit;
    if (failure.message !== "") await recorded(thrown, failure.exit);
  }
}

/** For who has to find out why; a failure to do so changes nothing. */
async function recorded(thrown: unknown, exit: number): Promise<void> {
  try {
    const { recordFailure } = await import("../app/diagnostics.ts");
    recordFailure(thrown, exit);
  } catch {
    // It has been said, and the exit code stands.
  }
}

/** What stands behind `--` is never an option. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const dashes = words.indexOf("--");
  return dashes === -1 ? words : words.slice(0, dashes);
}

/** The flag goes before FORCE_COLOR, and counts where no command is found too. */
function withoutColor(): void {
  delete process.env["FORCE_COLOR"];
  process.env["NO_COLOR"] = "1";
}

const OF_THE_PROGRAM: ReadonlySet<string> = new Set(["--help", "-h", "--version"]);

/** The command that words without one mean: the chat, with these options. */
export function routed(words: readonly string[]): readonly string[] {
  const [first] = words;
  if (first === undefined) return ["chat"];
  if (first === "help") return [...words.slice(1), "--help"];
  if (!first.startsWith("-") || first === "--" || OF_THE_PROGRAM.has(first)) return words;
  return ["chat", ...words];
}
