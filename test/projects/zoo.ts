/**
 * `npm run test:zoo [-- WORD…]`: runs every repository of the zoo through `harness vet` as a person would, and very
 * popular packages, fetched from their registries. Run by hand, apart from the tests: it takes some minutes. WORD
 * selects by name (`npm-`, `published`). Exits with 1 if a behaviour was not named or something honest was not quiet.
 */
import { spawnSync } from "node:child_process";
import { lchownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Finding, VetReport } from "../../src/core/behaviour.ts";
import { BENIGN } from "../fixtures/zoo/benign.ts";
import { HOSTILE } from "../fixtures/zoo/hostile.ts";
import { given, missedOf, toldOf } from "../fixtures/zoo/given.ts";
import type { Hostile, Repository } from "../fixtures/zoo/repositories.ts";
import { PUBLISHED_PACKAGES } from "./published-packages.ts";

const HARNESS = path.join(import.meta.dirname, "../../bin/harness");
const MINUTE = 60_000;
/** The owner of the folders when root runs this. */
const ORDINARY = 1000;

interface Row {
  readonly name: string;
  readonly report: Pick<VetReport, "verdict" | "findings" | "own_ms"> | string;
  readonly missed: readonly string[];
}

/** Names may be any bytes. */
function give(folder: string | Buffer): void {
  if (process.getuid?.() !== 0) return;
  lchownSync(folder, ORDINARY, ORDINARY);
  for (const entry of readdirSync(folder, { withFileTypes: true, encoding: "buffer" })) {
    const each = Buffer.concat([Buffer.from(folder), Buffer.from("/"), entry.name]);
    if (entry.isDirectory()) give(each);
    else lchownSync(each, ORDINARY, ORDINARY);
  }
}

function vet(root: string, target: string, run: string | undefined): VetReport | string {
  const words = ["vet", "--json", target, ...(run === undefined ? [] : ["--", "sh", "-c", run])];
  const ran = spawnSync(HARNESS, words, {
    cwd: root,
    env: { PATH: process.env["PATH"], HOME: root, XDG_STATE_HOME: path.join(root, "state") },
    encoding: "utf8",
    timeout: 5 * MINUTE,
    maxBuffer: 2 ** 28,
  });
  try {
    return JSON.parse(ran.stdout) as VetReport;
  } catch {
    return `exit ${ran.status}: ${ran.stderr.slice(0, 300)}`;
  }
}

async function hostile(repository: Hostile): Promise<Row> {
  const report = await vetted(repository);
  if (typeof report === "string") return { name: repository.name, report, missed: [report] };
  return { name: repository.name, report, missed: missedOf(repository, report.findings, report.verdict) };
}

async function benign(repository: Repository): Promise<Row> {
  return quiet(repository.name, await vetted(repository));
}

async function vetted(repository: Repository): Promise<VetReport | string> {
  const root = mkdtempSync(path.join(tmpdir(), "harness-zoo-"));
  try {
    const target = await given(path.join(root, "given"), repository);
    give(root);
    return vet(root, target, repository.run);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function published({ name, needs, get }: (typeof PUBLISHED_PACKAGES)[number]): Row | undefined {
  const lacking = needs.filter((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0);
  if (lacking.length > 0) {
    console.error(`left out: ${name}, for want of ${lacking.join(", ")}`);
    return undefined;
  }
  const root = mkdtempSync(path.join(tmpdir(), "harness-zoo-"));
  try {
    const folder = path.join(root, "given");
    mkdirSync(folder);
    const got = spawnSync("sh", ["-euc", get], { cwd: folder, encoding: "utf8", timeout: 3 * MINUTE });
    if (got.status !== 0) return quiet(name, `it could not be fetched: ${got.stderr.slice(-200)}`);
    const [archive = ""] = readdirSync(folder);
    give(root);
    return quiet(name, vet(root, path.join(folder, archive), undefined));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const loud = ({ weight }: Finding): boolean => weight !== "note";

function quiet(name: string, report: VetReport | string): Row {
  if (typeof report === "string") return { name, report, missed: [report] };
  return { name, report, missed: report.findings.filter(loud).map(toldOf) };
}

const words = process.argv.slice(2);
const wanted = (name: string): boolean => words.length === 0 || words.some((word) => name.includes(word));
const rows: Row[] = [];
const add = (row: Row | undefined): void => {
  if (row === undefined) return;
  rows.push(row);
  const { name, report, missed } = row;
  const seen =
    typeof report === "string"
      ? "no report"
      : `${report.verdict}, ${Math.round(report.own_ms)} ms of its own`;
  console.log(`${missed.length === 0 ? "ok  " : "RED "} ${name}: ${seen}`);
  for (const each of missed) console.log(`       ${each.slice(0, 300)}`);
};

for (const each of HOSTILE) if (wanted(each.name)) add(await hostile(each));
for (const each of BENIGN) if (wanted(`benign ${each.name}`)) add(await benign(each));
for (const each of PUBLISHED_PACKAGES) if (wanted(`published ${each.name}`)) add(published(each));
const red = rows.filter(({ missed }) => missed.length > 0).length;
console.log(`${rows.length} repositories, ${red} of them not as they should be`);
process.exitCode = red > 0 || rows.length === 0 ? 1 : 0;
