import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { dotProduct, Greatest, unit, VectorTable } from "../src/search/stores/embedded-vectors.ts";
import { SqliteConnection } from "../src/platform/sqlite.ts";
import { vectorWorld } from "../test/fixtures/vectors.ts";
import { counted, EMPTY, emptyPeak, type Figure, inTurn, type Measured, paired } from "./figure.ts";

const DIMENSION = 768;
const IDENTITY = { model: "m", dimension: DIMENSION };
const QUESTIONS = 50;

interface VectorFixture {
  readonly file: string;
  readonly table: VectorTable;
  /** All vectors as 32-bit floats, one after the other, in the order of their chunks. */
  readonly plain: Float32Array;
  readonly questions: readonly Float32Array[];
}

/** Created once for all figures of one size; the files are removed when the process exits. */
function fixtureOf(count: number): () => VectorFixture {
  let made: VectorFixture | undefined;
  return () => (made ??= build(count));
}

function build(count: number): VectorFixture {
  const folder = mkdtempSync(path.join(tmpdir(), "harness-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "vectors.db");
  const sqlite = new DatabaseSync(file);
  sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  const table = new VectorTable(new SqliteConnection(sqlite), IDENTITY);
  const plain = new Float32Array(count * DIMENSION);
  const world = vectorWorld(DIMENSION, 7);
  const questions: Float32Array[] = [];
  for (let from = 0; from < count; from += 64) {
    const batch = new Map<number, Float32Array>();
    for (let chunk = from; chunk < Math.min(count, from + 64); chunk += 1) {
      const vector = world.next();
      if (chunk % Math.floor(count / QUESTIONS) === 0) questions.push(world.question(vector));
      plain.set(unit(vector) ?? vector, chunk * DIMENSION);
      batch.set(chunk, vector);
    }
    table.put(batch);
  }
  return { file, table, plain, questions };
}

function plainNearest({ plain }: VectorFixture, question: Float32Array, limit: number): readonly number[] {
  const query = unit(question) ?? question;
  const best = new Greatest(limit);
  for (let chunk = 0; chunk * DIMENSION < plain.length; chunk += 1)
    best.offer(dotProduct(plain.subarray(chunk * DIMENSION, (chunk + 1) * DIMENSION), query), chunk);
  return best.items();
}

/** The median time to find the 100 nearest, compared with scanning every vector in memory. */
function nearestTimes(bed: () => VectorFixture): Promise<Measured> {
  const { table, questions } = bed();
  let [turn, plainTurn] = [0, 0];
  const next = (at: number): Float32Array => questions[at % questions.length] ?? new Float32Array();
  return inTurn(
    QUESTIONS,
    () => timed(() => table.nearest(next(turn++), 100)),
    () => timed(() => plainNearest(bed(), next(plainTurn++), 100)),
  );
}

function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  work();
  return Promise.resolve(performance.now() - start);
}

/** The required share of the ten nearest, compared with the share found. */
function recall(bed: () => VectorFixture): Promise<Measured> {
  const { table, questions } = bed();
  let hits = 0;
  for (const question of questions) {
    const wanted = new Set(plainNearest(bed(), question, 10));
    hits += table.nearest(question, 10).filter(({ chunk }) => wanted.has(chunk)).length;
  }
  return Promise.resolve(counted(0.98, hits / (questions.length * 10)));
}

/**
 * A process that opens the file and asks. It reads its own peak, since getrusage would include the peak of this
 * process.
 */
const ASK = `
import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { Connection } from "${new URL("../src/platform/sqlite.ts", import.meta.url).href}";
import { VectorTable } from "${new URL("../src/search/stores/embedded-vectors.ts", import.meta.url).href}";
const start = performance.now();
const database = new Connection(new DatabaseSync(process.argv[1]));
const query = Float32Array.from({ length: ${DIMENSION} }, (_, at) => Math.sin(at * at));
const table = new VectorTable(database, ${JSON.stringify(IDENTITY)});
table.nearest(query, 100);
const first = performance.now() - start;
for (let turn = 0; turn < Number(process.argv[2]); turn += 1) table.nearest(query, 100);
const [, peak] = /VmHWM:\\s+(\\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"));
const all = performance.now();
let sum = 0;
const rows = database.each("SELECT numbers FROM vectors");
for (let next = rows.next(); !next.done; next = rows.next()) {
  const vector = new Float16Array(next.value.numbers.buffer);
  for (let at = 0; at < ${DIMENSION}; at += 1) sum += vector[at] * query[at];
}
console.log(JSON.stringify({ first, rss: peak / 1024, all: performance.now() - all, sum }));
`;

function inProcess(
  { file }: VectorFixture,
  more: number,
): { readonly first: number; readonly rss: number; readonly all: number } {
  const words = ["--input-type=module", "-e", ASK, file, String(more)];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", timeout: 120_000 });
  if (stdout === "") throw new Error(`no answer: ${stderr}`);
  return JSON.parse(stdout) as { readonly first: number; readonly rss: number; readonly all: number };
}

/** The first answer of a new process with loaded modules, compared with reading every vector. */
function first(bed: () => VectorFixture): Promise<Measured> {
  const runs = Array.from({ length: 7 }, () => inProcess(bed(), 0));
  return Promise.resolve(
    paired(
      runs.map((run) => run.first),
      runs.map((run) => run.all),
    ),
  );
}

/** Peak memory of a process that has asked 50 times. */
const memory = (bed: () => VectorFixture): Promise<Measured> =>
  inTurn(3, () => Promise.resolve(inProcess(bed(), 50).rss), emptyPeak);

const small = fixtureOf(20_000);
const large = fixtureOf(100_000);

export const VECTORS: readonly Figure[] = [
  {
    name: "vectors.nearest-20k",
    unit: "ms",
    against: "looking at every vector in memory",
    hold: 0.8,
    measure: () => nearestTimes(small),
  },
  {
    name: "vectors.nearest-100k",
    unit: "ms",
    against: "looking at every vector in memory",
    hold: 0.5,
    measure: () => nearestTimes(large),
  },
  {
    name: "vectors.first-100k",
    unit: "ms",
    against: "reading every vector from the file",
    hold: 0.8,
    measure: () => first(large),
  },
  {
    name: "vectors.memory-100k",
    unit: "MB",
    against: EMPTY,
    hold: 9,
    measure: () => memory(large),
  },
  {
    name: "vectors.recall-100k",
    unit: "of 10",
    against: "looking at every vector",
    hold: 1,
    measure: () => recall(large),
  },
];
