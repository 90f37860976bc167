/** First file to load: it answers --version at once and loads the rest through the compile cache. */
import { enableCompileCache } from "node:module";
import path from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { placesFrom } from "../config/places.ts";

const words = process.argv.slice(2);
quietOnClosedPipe();
if (words.length === 1 && words[0] === "--version") {
  process.stdout.write(`harness ${manifest.version}\n`);
} else {
  enableCompileCache(path.join(placesFrom(process.env).cache, "compile"));
  const { runCli } = await import("./run.ts");
  await runCli(words);
}

/** A reader that left (`harness … | head`) is no failure of ours. */
function quietOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}
