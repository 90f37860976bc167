import { spawnSync } from "node:child_process";

export interface Commit {
  readonly id: string;
  readonly subject: string;
  readonly body: string;
  readonly touched: readonly string[];
}

/** Reads the history of a repository, from a bare git directory or a work tree; never checks anything out. */
export class Repository {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  commitAt(name: string): string {
    return this.#git(["rev-parse", "--verify", `${name}^{commit}`])
      .toString("utf8")
      .trim();
  }

  has(commit: string): boolean {
    return spawnSync("git", ["-C", this.#folder, "cat-file", "-e", `${commit}^{commit}`]).status === 0;
  }

  /** Newest first, without merges. */
  commits(range: string): readonly Commit[] {
    const said = this.#git([
      "log",
      "--no-merges",
      "--no-renames",
      "--name-only",
      "--format=%x01%H%x02%s%x02%b%x02",
      range,
    ]).toString("utf8");
    return said
      .split("\u0001")
      .slice(1)
      .map((one) => {
        const [id = "", subject = "", body = "", touched = ""] = one.split("\u0002");
        return { id, subject, body, touched: touched.split("\n").filter((line) => line !== "") };
      });
  }

  /** Regular files of a commit, by path, with the ids of their contents. */
  tree(commit: string): ReadonlyMap<string, string> {
    const rows = this.#git(["ls-tree", "-r", "-z", commit]).toString("utf8").split("\0");
    const files = new Map<string, string>();
    for (const row of rows) {
      const match = /^(100644|100755) blob ([0-9a-f]+)\t(.+)$/s.exec(row);
      if (match?.[2] !== undefined && match[3] !== undefined) files.set(match[3], match[2]);
    }
    return files;
  }

  /** Contents of a commit's files up to this size; files that contain a NUL are left out. */
  contents(commit: string, mostBytes: number): ReadonlyMap<string, string> {
    const files = [...this.tree(commit)];
    const said = this.#git(["cat-file", "--batch"], files.map(([, id]) => `${id}\n`).join(""));
    const texts = new Map<string, string>();
    let at = 0;
    for (const [path] of files) {
      const end = said.indexOf(10, at);
      const [, kind, length] = said.toString("utf8", at, end).split(" ");
      if (kind !== "blob") {
        // The object is missing: a clone may be partial.
        at = end + 1;
        continue;
      }
      const size = Number(length);
      const bytes = said.subarray(end + 1, end + 1 + size);
      at = end + 2 + size;
      if (size <= mostBytes && !bytes.includes(0)) texts.set(path, bytes.toString("utf8"));
    }
    return texts;
  }

  #git(words: readonly string[], input = ""): Buffer {
    const done = spawnSync("git", ["-C", this.#folder, "-c", "core.quotePath=false", ...words], {
      input,
      maxBuffer: 2 ** 31 - 1,
      stdio: ["pipe", "pipe", "pipe"],
    });
    if (done.status === 0) return done.stdout;
    throw new Error(`git ${words[0] ?? ""} in ${this.#folder}: ${done.stderr.toString("utf8").trim()}`);
  }
}
