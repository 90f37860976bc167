import type { Arg, Found, Use } from "../model.ts";
import { given } from "../plain.ts";

interface Into {
  readonly sources: readonly Arg[];
  /** Null: where the program works. */
  readonly target: Arg;
  /** For sure a folder: what is written gets its name in it. */
  readonly isFolder: boolean;
}

const HERE = { kind: "literal", value: "." } as const;
const FOLDER = /(?:^|\/)\.{0,2}\/?$/;

/** What is taken, and where it goes; the target may be an option's value. */
function into(use: Use): Into {
  const { operands } = use;
  const named = use.options.findLast(({ name }) => name === "-t" || name === "--target-directory")?.value;
  if (named) return { sources: operands, target: named, isFolder: true };
  const last = operands.at(-1);
  if (last === undefined || operands.length === 1)
    return { sources: operands, target: { ...HERE, span: use.span }, isFolder: true };
  const sources = operands.slice(0, -1);
  return {
    sources,
    target: last,
    isFolder: sources.length > 1 || sources[0]?.kind !== "literal" || FOLDER.test(last.value),
  };
}

/** The target, and what can come to stand in it: the names that the host obeys mostly begin with a dot. */
function written(use: Use): readonly Found[] {
  const { sources, target, isFolder } = into(use);
  const inside = sources
    .filter(({ value }) => isFolder || nameOf(value).startsWith("."))
    .map((source) => below(target, nameOf(source.value), source));
  return [target, ...inside].map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }));
}

const nameOf = (path: string): string => {
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  return path.slice(path.lastIndexOf("/", end - 1) + 1, end);
};

/** A name in a folder; as vague as the vaguer of the two. */
function below(folder: Arg, name: string, source: Arg): Arg {
  const kind =
    folder.kind === "literal"
      ? source.kind
      : folder.kind === "glob" && source.kind === "dynamic"
        ? "dynamic"
        : folder.kind;
  return { kind, value: `${folder.value}/${name}`, span: source.span };
}

const reads = (use: Use, { sources }: Into): readonly Found[] =>
  sources.map((source) => ({ kind: "read", path: use.place(source), span: source.span }));

export function copies(use: Use): readonly Found[] {
  if (given(use, "-s", "--symbolic-link", "-l", "--link")) return links(use);
  return copied(use);
}

const copied = (use: Use): readonly Found[] => [...reads(use, into(use)), ...written(use)];

/** What moves leaves its place and can be read at the other one. */
export function moves(use: Use): readonly Found[] {
  const forced = given(use, "-f", "--force");
  const all = into(use);
  const left = all.sources.map((source): Found => ({
    kind: "delete",
    path: use.place(source),
    recursive: false,
    forced,
    span: source.span,
  }));
  return [...reads(use, all), ...left, ...written(use)];
}

/** A link opens what it leads to under another name, for writing too. */
export function links(use: Use): readonly Found[] {
  const { sources, target, isFolder } = into(use);
  const symbolic = given(use, "-s", "--symbolic", "--symbolic-link") && !given(use, "-r", "--relative");
  const opened = sources.flatMap((source) => {
    if (!symbolic || source.value.startsWith("/")) return [source];
    // A symbolic link is followed from the folder where it stands, and whether that is the target nobody knows here.
    const beside = below({ ...target, value: `${target.value}/..` }, source.value, source);
    return isFolder ? [below(target, source.value, source)] : [beside, below(target, source.value, source)];
  });
  const effects = opened.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span }));
  return [...effects, ...written(use)];
}

export function installs(use: Use): readonly Found[] {
  if (!given(use, "-d", "--directory")) return copied(use);
  return use.operands.map((folder) => ({ kind: "write", path: use.place(folder), span: folder.span }));
}
