import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { detectRecipe, type ProjectFile, projectFiles } from "../../docker/environments/detect-recipe.ts";
import { registriesAsked } from "../../docker/environments/system-steps.ts";
import { type FoundRecipe, readRecipe } from "../../docker/environments/recipe.ts";
import { readRegular } from "../../platform/safe-files.ts";
import type { Host } from "../host.ts";
import { readContainer } from "../project/container-context.ts";
import { trustedFile } from "../project/project-trust.ts";

/**
 * Chooses the recipe of a workspace: one that the user named, a trusted file of the project, or what its files imply.
 */
export interface ChosenRecipe extends FoundRecipe {
  readonly kind: "named" | "project" | "devcontainer" | "detected";
  /** The recipe's file; empty if the recipe is detected. */
  readonly file: string;
  /** The project's top folder; paths of files in a recipe are relative to it. */
  readonly top: string;
  readonly files: readonly ProjectFile[];
  /** Recipes that would take precedence but do not count, each with what would make it count. */
  readonly ignored: readonly string[];
}

/** Path of the user's recipe of this name. */
export const recipeFile = ({ places }: Host, name: string): string =>
  path.join(path.dirname(places.configFiles[0]), "environments", `${name}.json`);

export async function chooseRecipe(
  host: Host,
  workspace: string,
  name: string | null,
): Promise<ChosenRecipe> {
  const { files, more } = await projectFiles(workspace);
  const ignored: string[] = more
    ? ["not all folders were searched; to name what the project needs, write a recipe: .harness/env.json"]
    : [];
  if (name !== null) return { ...(await namedRecipe(host, name)), top: workspace, files, ignored };
  for (const kind of ["environment", "devcontainer"] as const) {
    const found = await trustedFile(host, workspace, kind);
    if (found.state === "untrusted") ignored.push(`${found.file} is ignored: ${found.why}: harness trust`);
    if (found.state !== "trusted") continue;
    const read =
      kind === "environment"
        ? written(found.file, found.text)
        : withDetected(
            devcontainer(await readContainer(found.top, found.files, path.basename(found.file))),
            detectRecipe(files),
          );
    const about = {
      kind: kind === "environment" ? "project" : kind,
      file: found.file,
      top: found.top,
    } as const;
    return { ...read, ...about, files, ignored };
  }
  return { ...detectRecipe(files), kind: "detected", file: "", top: workspace, files, ignored };
}

async function namedRecipe(
  host: Host,
  name: string,
): Promise<FoundRecipe & Pick<ChosenRecipe, "kind" | "file">> {
  if (!/^[a-z0-9][\w.-]{0,63}$/i.test(name))
    throw new HarnessError(
      EXIT.usage,
      `${JSON.stringify(name)} is not a valid environment name`,
      "harness env show",
    );
  const file = recipeFile(host, name);
  const text = await readRegular(file, { links: "follow", max: MAX_BYTES }).catch((thrown: unknown) => {
    const why = errorCode(thrown) === "ENOENT" ? "there is no such file" : reasonOf(thrown);
    throw new HarnessError(
      EXIT.usage,
      `no environment ${name}: ${file}: ${why}`,
      "docs/environments.md shows a recipe",
      thrown,
    );
  });
  return { ...written(file, text.toString("utf8")), kind: "named", file };
}

const MAX_BYTES = 2 ** 20;

/**
 * A dev container does not say where its commands put dependencies or which registries they use: the project's files
 * do.
 */
function withDetected(read: FoundRecipe, detected: FoundRecipe): FoundRecipe {
  if (read.recipe.setup.length === 0) return read;
  const { folders } = detected.recipe;
  const asked = [...new Set([...detected.recipe.registries, ...registriesAsked(read.recipe.setup)])];
  return {
    ...read,
    recipe: { ...read.recipe, folders: [...folders], registries: asked },
    taken: [
      ...read.taken,
      ...folders.map((folder) => ({ what: `kept in a volume: ${folder}`, from: "the project's files" })),
      ...asked.map((name) => ({ what: `registry: ${name}`, from: "the project's files and its commands" })),
    ],
  };
}

function devcontainer(read: FoundRecipe | string): FoundRecipe {
  if (typeof read !== "string") return read;
  throw new HarnessError(EXIT.usage, read, "fix it there, then: harness trust");
}

function written(file: string, text: string): FoundRecipe {
  const recipe = readRecipe(parsed(file, text));
  if (Array.isArray(recipe))
    throw new HarnessError(
      EXIT.usage,
      `${file}: ${recipe.join("; ")}`,
      "docs/environments.md lists every key",
    );
  return {
    recipe: recipe as FoundRecipe["recipe"],
    taken: [{ what: "the whole recipe", from: file }],
    notTaken: [],
  };
}

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `${file}: ${reasonOf(thrown)}`, "fix it there", thrown);
  }
}
