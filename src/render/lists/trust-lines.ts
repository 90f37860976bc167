import { visibleWhole } from "../../core/text/visible.ts";
import { mark } from "../tty/line-marks.ts";
import { type Output, styleText } from "../tty/output.ts";

/**
 * What a project brings, shown to the person who decides whether to trust it. The project's text is escaped but never
 * cut.
 */

interface ShownDoing {
  readonly text: string;
  readonly loosens: boolean;
}

export interface ShownItem {
  readonly what: string;
  readonly files: readonly string[];
  readonly standing: "trusted" | "new" | "changed" | "unusable";
  readonly declined: boolean;
  readonly does: readonly ShownDoing[];
  readonly problem: string | null;
  readonly waits: boolean;
  readonly diff: readonly string[];
}

interface ShownTrust {
  readonly project: string | null;
  readonly hash: string;
  readonly damage: string | null;
  readonly gone: readonly string[];
  readonly look_alikes: readonly string[];
  readonly items: readonly ShownItem[];
}

export function trustText(
  { project, hash, damage, gone, look_alikes, items }: ShownTrust,
  stream: Output,
): string {
  const lines = [
    ...(damage === null ? [] : [styleText("yellow", visibleWhole(damage), { stream })]),
    ...(items.length === 0
      ? [`nothing that ${visibleWhole(project ?? "this folder")} brings would count`]
      : []),
    ...gone.map((kind) => `${kind}: trusted, and no longer there`),
    ...look_alikes.map((said) => styleText("yellow", visibleWhole(said), { stream })),
  ].map((line) => `${line}\n`);
  const hint = items.some(({ waits }) => waits)
    ? `${styleText("bold", "next:", { stream })} harness trust, or without a terminal: harness trust --yes ${hash}\n`
    : "";
  return [...lines, ...items.map((item) => itemText(item, stream))].join("") + hint;
}

const TIGHTENS = "only tightens, and counts";

const STATES = {
  trusted: "trusted",
  new: "not trusted",
  changed: "changed since it was trusted",
  unusable: "never counts",
};

/** A mark precedes everything that counts only once it is trusted. */
export function itemText(item: ShownItem, stream: Output): string {
  const { what, files, standing, declined, does, problem, waits, diff } = item;
  const state =
    problem !== null && standing !== "trusted"
      ? "does not count"
      : standing === "new" && !waits
        ? TIGHTENS
        : STATES[standing];
  const suffix = declined ? ", declined" : "";
  const name = visibleWhole(files.join(" and "));
  const head = `${styleText("bold", name, { stream })}  ${what}: ${state}${suffix}`;
  const effects = does.map(({ text, loosens }) =>
    loosens && standing !== "trusted"
      ? styleText("yellow", `  ${mark("loosens", stream)} ${visibleWhole(text)}`, { stream })
      : `    ${visibleWhole(text)}`,
  );
  const lines = [
    head,
    ...(problem === null ? [] : [styleText("red", `  ${visibleWhole(problem)}`, { stream })]),
    ...effects,
    ...(waits && does.some(({ loosens }) => !loosens)
      ? [`  what has no ${mark("loosens", stream)} before it only tightens, and counts as it is`]
      : []),
    ...(diff.length === 0
      ? []
      : ["  since it was trusted:", ...diff.map((line) => `    ${visibleWhole(line)}`)]),
  ];
  return `${lines.join("\n")}\n`;
}
