import { flush, run } from "@oclif/core";
import { EXIT } from "../core/errors.ts";
import { describeFailure, renderFailure } from "./failure.ts";
import { packageRoot } from "./package-root.ts";

/** Runs one command line to its exit code; every failure is printed here and nowhere else. */
export async function runCli(words: readonly string[]): Promise<void> {
  quietOnClosedPipe();
  try {
    await run([...words], { root: packageRoot });
    await flush();
  } catch (thrown) {
    const failure = describeFailure(thrown, words);
    if (failure.message !== "") renderFailure(failure, words.includes("--json"));
    process.exitCode = failure.exit;
  }
}

/** A reader that left (`harness … | head`) is no failure of ours. */
function quietOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT.done);
    throw error;
  });
}
