/**
 * `node bench/search/main.ts --repo DIR [--hold N | --queries FILE] [--most N] [--short] [--embed MODEL]`: measures how
 * well questions find the files that answer them, compared with ripgrep by words and BM25 over whole files in the same
 * run. DIR is a repository with its history. The questions come from its last N commits, and the index from the state
 * before them; or they come from a file with one JSON object per line (`base`, `id`, `query`, `short`, `answers` and
 * `also`), of which those are used whose base this repository has. Prints one JSON line per method; ± is 95 %. With
 * `--embed`, also uses vectors of that model at OLLAMA_HOST, at fixed weights and at the weight chosen by the commits
 * before the index; they are kept in `node_modules/.cache`.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ollamaEmbedder } from "../../src/models/embeddings.ts";
import { ollamaAddress } from "../../src/models/providers/ollama-client.ts";
import type { EmbeddingModel } from "../../src/search/embed-model.ts";
import { scratch } from "../../test/fixtures/scratch.ts";
import { type Asker, otherAskers, harnessAsker } from "./contestants.ts";
import { cutAll } from "./corpus.ts";
import { Repository } from "./git.ts";
import { type CommitQuery, queryOf, withoutTwins } from "./queries.ts";
import { embedded } from "./with-vectors.ts";
import { halfWidth, KINDS, type Marks, marksOf, mean } from "./score.ts";

const MAX_BYTES = 1 << 20;
const CACHE = "node_modules/.cache/bench-vectors";

interface QuestionSet {
  readonly base: string;
  readonly asked: readonly CommitQuery[];
}

/** The number of commits before the base that are examined. */
const BEFORE = 600;

function before(repository: Repository, base: string): readonly CommitQuery[] {
  const there = new Set(repository.tree(base).keys());
  const all = repository
    .commits(base)
    .slice(0, BEFORE)
    .map((commit) => queryOf(commit, there));
  return withoutTwins(all.filter((one) => one !== null));
}

function fromHistory(repository: Repository, hold: number, most: number): QuestionSet {
  const base = repository.commitAt(`HEAD~${hold}`);
  const there = new Set(repository.tree(base).keys());
  const all = repository.commits(`${base}..HEAD`).map((commit) => queryOf(commit, there));
  const asked = withoutTwins(all.filter((one) => one !== null));
  // Ordered by id, so that no time and no author is preferred.
  return { base, asked: asked.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, most) };
}

function fromFile(repository: Repository, file: string): readonly QuestionSet[] {
  const rows = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as CommitQuery & { readonly base: string });
  const byBase = Map.groupBy(rows, ({ base }) => base);
  return [...byBase].filter(([base]) => repository.has(base)).map(([base, asked]) => ({ base, asked }));
}

async function scored(asker: Asker, questions: readonly CommitQuery[], short: boolean): Promise<object> {
  const marks: Marks[] = [];
  const times: number[] = [];
  for (const question of questions) {
    const start = performance.now();
    const found = await asker.find(short ? question.short : question.query);
    times.push(performance.now() - start);
    marks.push(marksOf(found, question));
  }
  const sorted = times.toSorted((a, b) => a - b);
  const part = (share: number): number => round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0);
  const middle = mean(marks);
  const figures: Record<string, number> = {};
  for (const kind of KINDS) figures[kind] = round(middle[kind]);
  const widths = {
    recall10_95: round(halfWidth(marks, "recall10")),
    mrr10_95: round(halfWidth(marks, "mrr10")),
  };
  return {
    way: asker.name,
    ...figures,
    ...widths,
    p50_ms: part(0.5),
    p95_ms: part(0.95),
  };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
const say = (value: object): void => void process.stdout.write(`${JSON.stringify(value)}\n`);

async function measure(repository: Repository, questionSet: QuestionSet, short: boolean): Promise<void> {
  const contents = repository.contents(questionSet.base, MAX_BYTES);
  const files = await cutAll(contents);
  await using place = await scratch();
  const start = performance.now();
  await using harness = await harnessAsker(place.at("index"), files);
  const chunks = files.reduce((sum, file) => sum + file.chunks.length, 0);
  const seconds = round((performance.now() - start) / 1000);
  say({
    base: questionSet.base,
    files: files.length,
    chunks,
    index_s: seconds,
    queries: questionSet.asked.length,
  });
  for (const asker of [harness, ...otherAskers(contents, files)])
    say(await scored(asker, questionSet.asked, short));
  if (values.embed === undefined) return;
  const model = modelAt(values.embed);
  const past = before(repository, questionSet.base);
  await using vectors = await embedded(place.at("vectors"), files, { model, cache: CACHE, past });
  say({ history: vectors.worth });
  for (const asker of vectors.askers) say(await scored(asker, questionSet.asked, short));
}

function modelAt(name: string): EmbeddingModel {
  const server = ollamaAddress(process.env, null);
  return { id: `bench/${name}`, name, embedder: ollamaEmbedder(server, name), mask: (text) => text };
}

const { values } = parseArgs({
  options: {
    repo: { type: "string" },
    queries: { type: "string" },
    hold: { type: "string", default: "400" },
    most: { type: "string", default: "100" },
    short: { type: "boolean", default: false },
    embed: { type: "string" },
  },
});
if (values.repo === undefined) throw new Error("--repo DIR: a repository with its history");
const repository = new Repository(values.repo);
const all =
  values.queries === undefined
    ? [fromHistory(repository, Number(values.hold), Number(values.most))]
    : fromFile(repository, values.queries);
if (all.every(({ asked }) => asked.length === 0)) throw new Error("no question is about this repository");
for (const questionSet of all) await measure(repository, questionSet, values.short);
