import { visible } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

interface Taken {
  readonly what: string;
  readonly from: string;
}

interface ShownRecipe {
  readonly kind: string;
  readonly file: string;
  readonly taken: readonly Taken[];
  readonly notTaken: readonly Taken[];
  readonly ignored: readonly string[];
}

const ORIGINS: Readonly<Record<string, string>> = {
  named: "your recipe",
  project: "the project's trusted recipe",
  devcontainer: "the project's trusted devcontainer",
  detected: "found in the project's files",
};

/** What an environment would be made of, and the file that each line came from. */
export function recipeLines({ kind, file, taken, notTaken, ignored }: ShownRecipe, stream: Output): string {
  const title = `${ORIGINS[kind] ?? kind}${file === "" ? "" : `: ${visible(file)}`}`;
  const rows = taken.map(({ what, from }) => [visible(what), visible(from)] as const);
  const width = Math.min(60, Math.max(0, ...rows.map(([what]) => what.length)));
  return [
    styleText("bold", title, { stream }),
    ...(rows.length === 0 ? ["  nothing: the sandbox image as it is"] : []),
    ...rows.map(([what, from]) => `  ${what.padEnd(width)}  ${styleText("dim", from, { stream })}`),
    ...(notTaken.length === 0 ? [] : [styleText("bold", "not taken", { stream })]),
    ...notTaken.map(({ what, from }) => `  ${visible(what)}  ${styleText("dim", visible(from), { stream })}`),
    ...ignored.map((line) => `${styleText("yellow", "note", { stream })} ${visible(line)}`),
    "",
  ].join("\n");
}
