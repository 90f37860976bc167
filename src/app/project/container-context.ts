import path from "node:path";
import { type Context, type ContextFile, readContext } from "../../docker/environments/context-files.ts";
import { buildOf, readDevcontainer } from "../../docker/environments/devcontainer.ts";
import type { FoundRecipe } from "../../docker/environments/recipe.ts";
import type { BroughtFile } from "../../extensions/brought.ts";

/**
 * Files that a dev container's Dockerfile takes from its build context: they are part of what is trusted, and of the
 * recipe.
 */

async function contextOf(top: string, [main, dockerfile]: readonly BroughtFile[]): Promise<Context> {
  if (main === undefined || dockerfile === undefined) return new Map();
  const build = buildOf(main.text, dockerfile.text);
  const folder = path.posix.join(path.posix.dirname(main.path), build.context);
  if (folder === ".." || folder.startsWith("../") || path.isAbsolute(build.context))
    return new Map(build.sources.map((source) => [source, "its context is outside the project"]));
  const place = { top, folder: folder === "." ? "" : folder.replace(/\/$/, ""), dockerfile: dockerfile.path };
  return readContext(place, build.sources);
}

const filesIn = (context: Context): readonly ContextFile[] => [
  ...new Map(
    [...context.values()]
      .flatMap((source) => (typeof source === "string" ? [] : source.flatMap(({ files }) => [...files])))
      .map((file) => [file.path, file]),
  ).values(),
];

/** How many bytes of text are shown; files beyond that, and files that are not text, are shown by their hash. */
const SHOWN = 2 ** 17;

/** For trust: the files other than those that a dev container names itself. */
export async function contextFiles(
  top: string,
  files: readonly BroughtFile[],
): Promise<readonly BroughtFile[]> {
  const known = new Set(files.map((file) => file.path));
  let shown = 0;
  return filesIn(await contextOf(top, files))
    .filter((file) => !known.has(file.path))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path: name, sha256, bytes }) => {
      const text = textOf(bytes);
      shown += text === undefined ? 0 : bytes.length;
      return text === undefined || shown > SHOWN
        ? { path: name, text: "", sha256, bytes: bytes.length }
        : { path: name, text, sha256 };
    });
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * The recipe of a dev container named `from` (`files`: its own file, its Dockerfile, and the files that these take). A
 * file that has changed since `files` was read is not taken.
 */
export async function readContainer(
  top: string,
  files: readonly BroughtFile[],
  from: string,
): Promise<FoundRecipe | string> {
  const [main, dockerfile] = files;
  if (main === undefined) return "there is no dev container";
  const known = new Map(files.map((file) => [file.path, file]));
  const found = await contextOf(top, files);
  const context = new Map(
    [...found].map(([source, each]) => {
      const other =
        typeof each === "string"
          ? undefined
          : each
              .flatMap((match) => [...match.files])
              .find((file) => known.get(file.path)?.sha256 !== file.sha256);
      return [source, other === undefined ? each : `${other.path} has changed since it was trusted`] as const;
    }),
  );
  return readDevcontainer(main.text, from, dockerfile, context);
}
