/** First file to load: it answers --version at once and loads the rest, of a command or for a shell's tab, through the compile cache. */
import manifest from "../../package.json" with { type: "json" };
import { compiledIn, hostPath } from "../config/places.ts";
import { stderr, stdout } from "../render/tty/output.ts";

const words = process.argv.slice(2);
// Its addresses go through an old parser of a package of ours; nobody who reads that can do anything about it.
process.noDeprecation = true;
process.env["PATH"] = hostPath(process.env["PATH"]);
guardOutput();
if (words.length === 1 && words[0] === "--version") {
  stdout.write(`harness ${manifest.version}\n`);
} else {
  // Loaded here: --version does without, and would wait for it.
  const compiled = compiledIn(process.env);
  if (compiled !== undefined) process.getBuiltinModule("node:module").enableCompileCache(compiled);
  if (words[0] === "__complete")
    await (await import("./completion/completion-answer.ts")).answerCompletion(words.slice(1));
  else await (await import("./command-line.ts")).runCli(words);
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
    stderr.write("  next: look where stdout leads; a full disk shows in: df -h\n");
    process.exit(1);
  });
}
