import { visibleWhole } from "../../core/visible.ts";
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
    ...(items.length === 0 ? [`there is nothing to trust in ${visibleWhole(project ?? "this folder")}`] : []),
    ...gone.map((kind) => `${kind}: trusted, but no longer there`),
    ...look_alikes.map((said) => styleText("yellow", visibleWhole(said), { stream })),
  ].map((line) => `${line}\n`);
  const hint = items.some(({ waits }) => waits)
    ? `${styleText("bold", "next:", { stream })} harness trust, or without a terminal: harness trust --yes ${hash}\n`
    : "";
  return [...lines, ...items.map((item) => itemText(item, stream))].join("") + hint;
}

const TIGHTENS = "only tightens, so it applies without trust";

const STATES = {
  trusted: "trusted",
  new: "not trusted",
  changed: "changed since it was trusted",
  unusable: "unusable",
};

/** A mark precedes everything that counts only once it is trusted. */
export function itemText(item: ShownItem, stream: Output): string {
  const { what, files, standing, declined, does, problem, waits, diff } = item;
  const state =
    problem !== null && standing !== "trusted"
      ? "ignored"
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
      ? [`  lines without ${mark("loosens", stream)} only tighten, so they apply without trust`]
      : []),
    ...(diff.length === 0
      ? []
      : ["  since it was trusted:", ...diff.map((line) => `    ${visibleWhole(line)}`)]),
  ];
  return `${lines.join("\n")}\n`;
}
