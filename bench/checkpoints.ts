import { cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CheckpointStore } from "../src/sessions/checkpoints/checkpoint-store.ts";
import { type Figure, inTurn, type Measured } from "./figure.ts";

const FOLDERS = 200;
const FILES = 100;

/** 20,000 files of some kilobytes, like a project with its dependencies. */
function makeTree(root: string): void {
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const at = path.join(root, `package-${folder}`);
    mkdirSync(at, { recursive: true });
    for (let file = 0; file < FILES; file += 1)
      writeFileSync(
        path.join(at, `module-${file}.ts`),
        `export const x${file} = ${folder};\n`.repeat(1 + ((folder * file) % 120)),
      );
  }
}

async function inPlace(work: (place: string, root: string) => Promise<Measured>): Promise<Measured> {
  const place = mkdtempSync(path.join(tmpdir(), "harness-bench-"));
  try {
    const root = path.join(place, "work");
    makeTree(root);
    return await work(place, root);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function timed(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The first checkpoint: every file is read, and all contents are on disk when it returns. */
const first = (): Promise<Measured> =>
  inPlace((place, root) =>
    inTurn(
      3,
      async () => {
        const stateDir = path.join(place, "state");
        rmSync(stateDir, { recursive: true, force: true });
        using store = new CheckpointStore({ stateDir, workspace: root });
        return await timed(() => store.take("bench"));
      },
      () => {
        const copy = path.join(place, "copy");
        rmSync(copy, { recursive: true, force: true });
        return timed(() => cpSync(root, copy, { recursive: true }));
      },
    ),
  );

function walk(folder: string): void {
  for (const name of readdirSync(folder)) {
    const at = path.join(folder, name);
    if (lstatSync(at).isDirectory()) walk(at);
  }
}

/** A later checkpoint: three files have changed since the last one. */
const later = (): Promise<Measured> =>
  inPlace(async (place, root) => {
    using store = new CheckpointStore({ stateDir: path.join(place, "state"), workspace: root });
    await store.take("bench");
    let round = 0;
    return inTurn(
      15,
      async () => {
        round += 1;
        for (let file = 0; file < 3; file += 1)
          writeFileSync(path.join(root, `package-${round}`, `module-${file}.ts`), `${round} ${file}\n`);
        return await timed(() => store.take("bench"));
      },
      () => timed(() => walk(root)),
    );
  });

export const CHECKPOINTS: readonly Figure[] = [
  {
    name: "checkpoints.first-20000-files-vs-copy",
    unit: "ms",
    against: "a copy of the files",
    hold: 1.3,
    measure: first,
  },
  {
    name: "checkpoints.later-20000-files-vs-walk",
    unit: "ms",
    against: "names and metadata of the files",
    hold: 2.5,
    measure: later,
  },
];
