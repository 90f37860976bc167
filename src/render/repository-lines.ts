/** What a repository brings, for the person who decides whether to trust it, and what was found in it. */
import type {
  Finding,
  RepositoryVerdict,
  VetComparison,
  VetReport,
  VetStep,
  Weight,
} from "../core/behaviour.ts";
import { visibleLine, visibleWhole } from "../core/visible.ts";
import { formatDuration, formatSize, plural } from "../core/wording.ts";
import { columnsOf, mark, widthOfStream, wrapped } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

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
  readonly outer: readonly string[];
  readonly look_alikes: readonly string[];
  readonly items: readonly ShownItem[];
}

/** All that a project brings. Its own text is escaped but never cut. */
export function trustText(
  { project, hash, damage, gone, outer, look_alikes, items }: ShownTrust,
  stream: Output,
): string {
  const lines = [
    ...(damage === null ? [] : [styleText("yellow", visibleWhole(damage), { stream })]),
    ...(items.length === 0 ? [`there is nothing to trust in ${visibleWhole(project ?? "this folder")}`] : []),
    ...gone.map((kind) => `${kind}: trusted, but no longer there`),
    ...outer.map((file) => `${visibleWhole(file)}: trusted, but without effect here`),
    ...look_alikes.map((text) => styleText("yellow", visibleWhole(text), { stream })),
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

/** A report on a repository: the verdict first, then the reasons for it, what was run, and what was not seen. */
export function vetText(report: VetReport, stream: Output): string {
  const { verdict, repository, findings, steps, unseen } = report;
  const width = widthOfStream(stream);
  const title = `${verdict.toUpperCase()}  ${visibleLine(repository.name)}`;
  const facts = [
    `${repository.kind}${repository.commit === null ? "" : ` at ${visibleLine(repository.commit.slice(0, 12))}`}`,
    `${plural(repository.files, "file")}, ${formatSize(repository.bytes)}`,
    report.granted.length === 0 ? "no network" : `granted: ${visibleLine(report.granted.join(", "))}`,
    steps.length === 0 ? "no command was run" : `seen by ${seenBy(steps)}`,
    `${formatDuration(report.took_ms)}${steps.length === 0 ? "" : `, ${formatDuration(report.own_ms)} of it in harness itself`}`,
  ];
  const parts = [
    [...headLines(title, verdict, { stream, width }), ...factLines(facts, { stream, width })],
    findings.length > 0 ? [] : [NOTHING[steps.length === 0 ? "looked" : "ran"]],
    ...WEIGHTS.map((weight) => findingLines(weight, findings, { stream, width, steps })),
    stepLines(steps, { stream, width }),
    listLines("Not seen", unseen, { stream, width }),
  ];
  return paragraphs(parts);
}

/** What is new in the second report; only that decides. */
export function comparisonText(comparison: VetComparison, stream: Output): string {
  const { verdict, before, after, findings, gone, changes, unseen } = comparison;
  const width = widthOfStream(stream);
  const sides = `${visibleLine(before.repository.name)} (${before.verdict})${mark("then", stream)}${visibleLine(after.repository.name)} (${after.verdict})`;
  const isSame = findings.length === 0 && changes.length === 0 && gone.length === 0;
  const parts = [
    [
      ...headLines(`${verdict.toUpperCase()}  what is new`, verdict, { stream, width }),
      ...dimLines(sides, { stream, width }),
    ],
    isSame ? ["Nothing has changed."] : [],
    ...WEIGHTS.map((weight) => findingLines(weight, findings, { stream, width, steps: [] })),
    listLines("Behaviour", changes, { stream, width }),
    listLines(
      "No longer found",
      gone.map(({ rule, text }) => `${text}  ${rule}`),
      { stream, width },
    ),
    listLines("Not seen", unseen, { stream, width }),
  ];
  return paragraphs(parts);
}

/** Parts without lines are left out. */
const paragraphs = (parts: readonly (readonly string[])[]): string =>
  parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");

/** Kinds of findings, the gravest first. */
export const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];
const COLOURS = { quiet: "green", noisy: "yellow", hostile: "red" } as const satisfies Record<
  RepositoryVerdict,
  string
>;
export const WEIGHT_HEADS: Readonly<Record<Weight, string>> = {
  hostile: "Hostile: nothing else explains it",
  noisy: "Noisy: builds and tests rarely do this",
  note: "Worth knowing",
};
const WEIGHT_COLOURS = { hostile: "red", noisy: "yellow", note: "dim" } as const;

const NOTHING = {
  looked: "Nothing was found in its files. None of them was run.",
  ran: "Nothing was found in its files or in what its commands did.",
} as const;

function seenBy(steps: readonly VetStep[]): string {
  const kinds = new Set(steps.map(({ observed }) => observed.by));
  if (kinds.has("none")) return "what was left behind";
  return kinds.has("samples") ? "samples" : "each call";
}

interface TextArea {
  readonly stream: Output;
  readonly width: number;
}

const INDENT = 4;

const headLines = (
  text: string,
  verdict: RepositoryVerdict,
  { stream, width }: TextArea,
): readonly string[] =>
  wrappedKeeping(text, width).map((line) => styleText(["bold", COLOURS[verdict]], line, { stream }));

const dimLines = (text: string, { stream, width }: TextArea): readonly string[] =>
  wrapped(text, width).map((line) => styleText("dim", line, { stream }));

/** Puts as many facts on a line as fit. */
function factLines(facts: readonly string[], at: TextArea): readonly string[] {
  const lines: string[] = [];
  for (const fact of facts) {
    const longer = lines.length === 0 ? fact : `${lines.at(-1)}${mark("between", at.stream)}${fact}`;
    if (columnsOf(longer) <= at.width) lines.splice(-1, 1, longer);
    else lines.push(fact);
  }
  return lines.flatMap((line) => dimLines(line, at));
}

/** Keeps the two blanks after the verdict. */
const wrappedKeeping = (text: string, width: number): readonly string[] =>
  columnsOf(text) <= width ? [text] : wrapped(text, width);

/** The text with its source dimmed behind it, or on a line of its own if both do not fit. */
function withAside(text: string, aside: string, { stream, width }: TextArea): readonly string[] {
  const lines = wrapped(text, width - INDENT).map((line) => `  ${line}`);
  const last = lines.at(-1) ?? "";
  if (columnsOf(`${last}  ${aside}`) <= width)
    return [...lines.slice(0, -1), `${last}  ${styleText("dim", aside, { stream })}`];
  return [
    ...lines,
    ...wrapped(aside, width - INDENT * 2).map((line) => `      ${styleText("dim", line, { stream })}`),
  ];
}

function findingLines(
  weight: Weight,
  findings: readonly Finding[],
  { stream, width, steps }: TextArea & { readonly steps: readonly VetStep[] },
): readonly string[] {
  const own = findings.filter((finding) => finding.weight === weight);
  if (own.length === 0) return [];
  const head = styleText(["bold", WEIGHT_COLOURS[weight]], WEIGHT_HEADS[weight], { stream });
  const lines = own.flatMap(({ rule, text, path, line, step, by, times }) => {
    const where =
      path === undefined || text.includes(path)
        ? ""
        : `${visibleLine(path)}${line === undefined ? "" : `:${line}`}: `;
    const often = times === undefined || times < 2 || text.startsWith("and ") ? "" : ` (${times} times)`;
    const inStep = step === undefined ? "" : `in ${visibleLine(steps[step]?.command ?? `step ${step + 1}`)}`;
    const chain =
      by === undefined || by.length === 0 ? inStep : by.map(visibleLine).join(mark("then", stream));
    return [
      ...withAside(`${where}${text}${often}`, rule, { stream, width }),
      ...(chain === ""
        ? []
        : wrapped(chain, width - INDENT * 2).map((each) => `      ${styleText("dim", each, { stream })}`)),
    ];
  });
  return [head, ...lines];
}

function stepLines(steps: readonly VetStep[], at: TextArea): readonly string[] {
  if (steps.length === 0) return [];
  const head = styleText("bold", "Commands", { stream: at.stream });
  return [
    head,
    ...steps.flatMap(({ command, what, from, exit_code, cause, duration_ms, observed }) => {
      const why = cause === null || cause === "program" ? "" : `, ${cause}`;
      const ended = observed.touched === null ? `exit ${exit_code}${why}` : "ended at a canary";
      const line = from === null ? what : `${what}, by ${visibleLine(from)}`;
      return withAside(visibleLine(command), `${line}: ${ended}, ${formatDuration(duration_ms)}`, at);
    }),
  ];
}

function listLines(head: string, texts: readonly string[], { stream, width }: TextArea): readonly string[] {
  if (texts.length === 0) return [];
  return [
    styleText("bold", head, { stream }),
    ...texts.flatMap((text) =>
      wrapped(text, width - INDENT).map((line, at) => (at === 0 ? `  ${line}` : `    ${line}`)),
    ),
  ];
}
