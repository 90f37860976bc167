/** It answers --version at once, and loads what a command needs, or a shell's tab. */
import manifest from "../../package.json" with { type: "json" };
import { hostPath } from "../config/places.ts";
import { stderr, stdout } from "../render/tty/output.ts";
import type { LoadFile } from "../app/compiled-code.ts";

export async function begin(words: readonly string[], load: LoadFile): Promise<void> {
  // Its addresses go through an old parser of a package of ours; nobody who reads that can do anything about it.
  process.noDeprecation = true;
  process.env["PATH"] = hostPath(process.env["PATH"]);
  guardOutput();
  if (words.length === 1 && words[0] === "--version") {
    stdout.write(`harness ${manifest.version}\n`);
  } else if (words[0] === "__complete") {
    await (await import("./completion-answer.ts")).answerCompletion(words.slice(1));
  } else {
    await (await import("./command.ts")).runCli(words, load);
  }
}

/** A reader that left (`harness … | head`) is no failure of ours, and what stderr cannot take changes no exit code. */
function guardOutput(): void {
  stdout.guard();
  stderr.guard();
  stderr.on("error", () => undefined);
  stdout.on("error", (error?: NodeJS.ErrnoException) => {
    if (error?.code === "EPIPE" || error?.code === "EIO") {
      // Who listens for this has something to put away first.
      if (!stdout.readerLeft()) process.exit(0);
      return;
    }
    stderr.write(`error: the answer could not be written: ${error?.message}\n`);
    stderr.write("  next: check where stdout goes; df -h shows whether a disk is full\n");
    process.exit(1);
  });
}
