import path from "node:path";
import type {
  Change,
  Changes,
  ListedEntry,
  FileContent,
  FileResult,
  PatternSearch,
  SearchResult,
} from "../../src/core/ports.ts";

interface Node {
  readonly kind: ListedEntry["kind"];
  readonly content: Uint8Array;
  readonly mode: number;
  readonly modified: number;
}

const MAX_COUNT = 64 * 2 ** 20;
const NOTHING = new Uint8Array();
/** Names at the top of the workspace: existing ones are protected, new ones are removed. */
const GUARDED = new Set([".git", ".harness", ".vscode"]);

/** The files of a fake box, by absolute path. */
export class FakeTree {
  readonly #root: string;
  readonly #nodes = new Map<string, Node>();
  readonly #first: ReadonlyMap<string, Node>;

  constructor(root: string, files: Readonly<Record<string, string>>) {
    this.#root = root;
    this.make(root, "folder");
    for (const [name, text] of Object.entries(files)) this.#put(path.join(root, name), Buffer.from(text));
    this.#first = new Map(this.#nodes);
  }

  read(file: string, { offset = 0, limit = MAX_COUNT } = {}): FileResult<FileContent> {
    const code = this.#unreadable(file);
    if (code !== undefined) return refused(code, file, "read");
    const { content } = this.#nodes.get(file) as Node;
    return ok({ content: content.slice(offset, offset + limit), size: content.length });
  }

  write(file: string, content: Uint8Array): FileResult<null> {
    const missing = this.#unreadable(file);
    const code = missing === "ENOENT" ? undefined : missing;
    if (content.length > MAX_COUNT) return refused("EFBIG", file, "write");
    if (code !== undefined) return refused(code, file, "write");
    if (this.isProtected(file)) return refused("EROFS", file, "write");
    this.#put(file, Uint8Array.from(content));
    return ok(null);
  }

  list(folder: string): FileResult<readonly ListedEntry[]> {
    const kind = this.#nodes.get(folder)?.kind;
    if (kind !== "folder")
      return refused(kind === undefined ? this.#missing(folder) : "ENOTDIR", folder, "list");
    const inside = [...this.#nodes].filter(([file]) => file !== folder && path.dirname(file) === folder);
    return ok(inside.map(([file, node]) => entryOf(file, node)));
  }

  stat(file: string): FileResult<ListedEntry> {
    const node = this.#nodes.get(file);
    return node === undefined ? refused(this.#missing(file), file, "stat") : ok(entryOf(file, node));
  }

  search({ pattern, limit }: PatternSearch, folder: string): FileResult<SearchResult> {
    const lines = [...this.#nodes]
      .filter(([file, { kind }]) => kind === "file" && file.startsWith(`${folder}/`))
      .filter(([file]) => !file.includes("/.git/"))
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([file, { content }]) =>
        Buffer.from(content)
          .toString("utf8")
          .replace(/\n$/, "")
          .split("\n")
          .map((text, index) => ({ path: path.relative(this.#root, file), line: index + 1, text })),
      )
      .filter(({ text }) => new RegExp(pattern).test(text));
    return ok({ lines: lines.slice(0, limit), more: lines.length > limit });
  }

  /** Absolute paths of the files below a folder, or of the file itself. */
  names(place: string): readonly string[] {
    return [...this.#nodes]
      .filter(([file, { kind }]) => kind === "file" && (file === place || file.startsWith(`${place}/`)))
      .map(([file]) => file)
      .filter((file) => !file.includes("/.git/"))
      .toSorted();
  }

  /** Creates a node; false if the path is protected. */
  make(file: string, kind: ListedEntry["kind"]): boolean {
    if (this.isProtected(file)) return false;
    const above = path.dirname(file);
    if (above !== file && !this.#nodes.has(above)) this.make(above, "folder");
    this.#nodes.set(file, {
      kind,
      content: NOTHING,
      mode: kind === "folder" ? 0o755 : 0o644,
      modified: now(),
    });
    return true;
  }

  chmod(file: string, mode: number): void {
    const node = this.#nodes.get(file);
    if (node !== undefined) this.#nodes.set(file, { ...node, mode });
  }

  remove(file: string): boolean {
    if (this.isProtected(file)) return false;
    const doomed = [...this.#nodes.keys()].filter((one) => one === file || one.startsWith(`${file}/`));
    for (const one of doomed) this.#nodes.delete(one);
    return doomed.length > 0;
  }

  isFolder(file: string): boolean {
    return this.#nodes.get(file)?.kind === "folder";
  }

  isProtected(file: string): boolean {
    const top = this.#topOf(file);
    return GUARDED.has(path.basename(top)) && (this.#first?.has(top) ?? false);
  }

  /** Removes planted paths and returns them. */
  takePlanted(): readonly string[] {
    const tops = new Set([...this.#nodes.keys()].map((file) => this.#topOf(file)));
    const planted = [...tops].filter((top) => GUARDED.has(path.basename(top)) && !this.#first.has(top));
    return planted.filter((top) => this.remove(top));
  }

  changes(): Changes {
    const below = (files: Iterable<string>): string[] =>
      [...files].filter(
        (file) => file.startsWith(`${this.#root}/`) && !this.isFolder(file) && !this.isProtected(file),
      );
    const name = (file: string): string => path.relative(this.#root, file);
    const [old, current] = [below(this.#first.keys()), below(this.#nodes.keys())];
    const changed =
      (what: Change["what"]) =>
      (file: string): Change => {
        const kind = (this.#nodes.get(file) ?? this.#first.get(file))?.kind ?? "file";
        return { what, kind, mode: 0o644, path: name(file) };
      };
    const all = [
      ...current.filter((file) => !this.#first.has(file)).map(changed("added")),
      ...current.filter((file) => this.#first.has(file) && this.#differs(file)).map(changed("modified")),
      ...old.filter((file) => !this.#nodes.has(file)).map(changed("deleted")),
    ];
    return { all, incomplete: false, dropTracked: () => Promise.resolve() };
  }

  #differs = (file: string): boolean => {
    const [old, current] = [this.#first.get(file), this.#nodes.get(file)];
    return old?.content !== current?.content || old?.mode !== current?.mode;
  };

  #put(file: string, content: Uint8Array): void {
    const mode = this.#nodes.get(file)?.mode ?? 0o644;
    this.make(file, "file");
    this.#nodes.set(file, { kind: "file", content, mode, modified: now() });
  }

  #topOf(file: string): string {
    const [top = ""] = path.relative(this.#root, file).split("/");
    return path.join(this.#root, top);
  }

  #unreadable(file: string): string | undefined {
    const kind = this.#nodes.get(file)?.kind;
    if (kind === undefined) return this.#missing(file);
    return kind === "file" ? undefined : kind === "folder" ? "EISDIR" : "EINVAL";
  }

  #missing(file: string): "ENOENT" | "ENOTDIR" | "EINVAL" | "ENAMETOOLONG" {
    if (file.includes("\0")) return "EINVAL";
    if (file.length >= 4096) return "ENAMETOOLONG";
    const kind = this.#nodes.get(path.dirname(file))?.kind;
    return kind === undefined || kind === "folder" ? "ENOENT" : "ENOTDIR";
  }
}

const now = (): number => Math.floor(Date.now() / 1000);
const ok = <T>(value: T): FileResult<T> => ({ kind: "ok", value });

const entryOf = (file: string, { kind, mode, modified, content }: Node): ListedEntry => ({
  name: path.basename(file),
  kind,
  mode,
  modified,
  size: content.length,
});

function refused(code: string, file: string, doing: string): FileResult<never> {
  const kind = code === "EROFS" ? "blocked" : "failed";
  return { kind, cause: "filesystem", code, path: file, reason: `${file}: ${doing}: ${code}` };
}
