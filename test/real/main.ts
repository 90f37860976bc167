/**
 * `npm run test:real [-- FILE…]`: tests what is promised of models on a real one. Run by hand, apart from the tests.
 * `OLLAMA_HOST` names an Ollama, `HARNESS_REAL_MODEL` one of its models; if none answers, `HARNESS_GGUF` names a file
 * that is served here. `HARNESS_QDRANT_URL` names a Qdrant for the store's contract. Exits with 2 if there is no model.
 */
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, globSync, openSync, readSync, statSync } from "node:fs";
import { setPriority } from "node:os";
import path from "node:path";
import { OLLAMA_MODEL, realOllama } from "./real-ollama.ts";
import { reasonOf } from "../../src/core/errors.ts";
import { runFile, Tally } from "../house/tally.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const QDRANT_CONTRACT = "test/contract/search-store-qdrant.test.ts";
/** Models take every core they get; other work on this machine has priority. */
const NICE = 10;

/** Time limit of a file: models answer slowly on a processor. */
const MOST_MS = 4 * 3_600_000;

const say = (text: string): void => console.log(text);

function endWithoutModel(why: string): never {
  console.error(
    [
      `${why}, so nothing was tested. Set one of:`,
      "  OLLAMA_HOST=127.0.0.1:11434   an Ollama with a model (HARNESS_REAL_MODEL=NAME, else its first)",
      "  HARNESS_GGUF=/path/to/a.gguf  a model that answers chats; it is served here, by node-llama-cpp from npm",
      "  HARNESS_QDRANT_URL=http://127.0.0.1:6333   besides: the contract of the search store on a real Qdrant",
    ].join("\n"),
  );
  process.exit(2);
}

interface Server extends AsyncDisposable {
  readonly url: string;
  readonly model: string;
}

function isGguf(file: string): boolean {
  if (!statSync(file).isFile()) return false;
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(4);
    readSync(descriptor, head, 0, head.length, 0);
    return head.toString("latin1") === "GGUF";
  } finally {
    closeSync(descriptor);
  }
}

async function server(): Promise<Server> {
  const { OLLAMA_HOST: host, HARNESS_GGUF: file } = process.env;
  const found = host === undefined ? "OLLAMA_HOST is not set" : await realOllama(process.env);
  if (typeof found !== "string") return { ...found, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (file === undefined) endWithoutModel(`${found}, and HARNESS_GGUF is not set`);
  if (!existsSync(file)) endWithoutModel(`${found}, and there is no ${file} (HARNESS_GGUF)`);
  if (!isGguf(file)) endWithoutModel(`${found}, and ${file} is no GGUF file (HARNESS_GGUF)`);
  say(`${found}: ${path.basename(file)} is served here`);
  const { serveGguf } = await import("./gguf-server.ts");
  const { MODEL } = await import("./served.ts");
  const served = await serveGguf(file).catch((thrown: unknown) =>
    endWithoutModel(`${file} cannot be served here (${reasonOf(thrown)})`),
  );
  return { url: served.url, model: MODEL, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

/** The store's contract skips itself if no Qdrant answers; a Qdrant named here must answer. */
async function qdrantFiles(): Promise<readonly string[]> {
  const url = process.env["HARNESS_QDRANT_URL"];
  if (url === undefined) {
    say("not run: the store's contract on a real Qdrant (HARNESS_QDRANT_URL is not set)");
    return [];
  }
  const answers = await fetch(url, { signal: AbortSignal.timeout(2000) }).then(
    ({ ok }) => ok,
    () => false,
  );
  if (answers) return [QDRANT_CONTRACT];
  console.error(`no Qdrant answers at ${url} (HARNESS_QDRANT_URL)`);
  return process.exit(2);
}

const wanted = process.argv.slice(2);
setPriority(NICE);
const tally = new Tally();
{
  await using real = await server();
  const stores = wanted.length > 0 ? [] : await qdrantFiles();
  say(`asking ${real.model} at ${real.url}`);
  execFileSync(process.execPath, [path.join(ROOT, "bin/build.ts")], { stdio: "inherit" });
  process.env["HARNESS_REAL_URL"] = real.url;
  process.env[OLLAMA_MODEL] = real.model;
  const all = globSync("test/real/*.real.test.ts", { cwd: ROOT }).toSorted();
  for (const file of wanted.length > 0 ? wanted : [...stores, ...all])
    await runFile(file, tally, { mostMs: MOST_MS });
}
await tally.print();
process.exitCode = tally.green ? 0 : 1;
