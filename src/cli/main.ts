/** First file to load: it answers --version at once and loads the rest through the compile cache. */
import { enableCompileCache } from "node:module";
import path from "node:path";
import manifest from "../../package.json" with { type: "json" };

const words = process.argv.slice(2);
if (words.length === 1 && words[0] === "--version") {
  process.stdout.write(`harness ${manifest.version}\n`);
} else {
  const { XDG_CACHE_HOME: cache, HOME: home } = process.env;
  if (cache !== undefined || home !== undefined)
    enableCompileCache(path.join(cache ?? path.join(home ?? "", ".cache"), "harness", "compile"));
  const { runCli } = await import("./run.ts");
  await runCli(words);
}
