/** First file to load, and a bundle by itself: it loads the others with what was compiled of them before. */
import path from "node:path";
import { bundleLoader, type LoadFile } from "../app/compiled-code.ts";

declare const BUNDLE: string;

interface Program {
  readonly begin: (words: readonly string[], load: LoadFile) => Promise<void>;
}

const dist = import.meta.dirname;
const words = process.argv.slice(2);
const load = bundleLoader({ dist, bundle: BUNDLE, words });
void (load(path.join(dist, "program.cjs")) as Program).begin(words, load);
