/**
 * `asker.ts FOLDER first`: milliseconds from opening an index to a process's first answer. `asker.ts FOLDER memory`:
 * peak memory in MiB after many questions.
 */
import { ownPeak } from "../figure.ts";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { ask, IDENTITY } from "./figures.ts";
import { generatedQueries } from "./generated.ts";

const [, , folder = "", asked] = process.argv;
const [first = "", ...more] = generatedQueries(60);
const start = performance.now();
await using store = openEmbeddedStore(folder, IDENTITY);
await ask(store, first);
const took = performance.now() - start;
if (asked === "memory") for (const text of more) await ask(store, text);
const said = asked === "memory" ? ownPeak() : took;
process.stdout.write(`${said}\n`);
