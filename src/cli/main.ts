/** First file to load: it answers --version at once and loads the rest through the compile cache. */
import { enableCompileCache } from "node:module";
import path from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { placesFrom } from "../config/places.ts";
import { hostPath } from "./host-path.ts";

const words = process.argv.slice(2);
// Its addresses go through an old parser of a package of ours; nobody who reads that can do anything about it.
process.noDeprecation = true;
process.env["PATH"] = hostPath(process.env["PATH"]);
guardOutput();
if (words.length === 1 && words[0] === "--version") {
  process.stdout.write(`harness ${manifest.version}\n`);
} else {
  enableCompileCache(path.join(placesFrom(process.env).cache, "compile"));
  const { runCli } = await import("./run.ts");
  await runCli(words);
}

/** A reader that left (`harness … | head`) is no failure of ours, and what stderr cannot take changes no exit code. */
function guardOutput(): void {
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || error.code === "EIO") {
      // Who listens for this has something to put away first.
      if (!process.stdout.emit("reader-left")) process.exit(0);
      return;
    }
    process.stderr.write(`error: the answer could not be written: ${error.message}\n`);
    process.stderr.write("  next: look where stdout leads; a full disk shows in: df -h\n");
    process.exit(1);
  });
}
