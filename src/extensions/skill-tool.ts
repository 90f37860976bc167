import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { Box } from "../core/ports.ts";
import { firstOf, nearest } from "../core/wording.ts";
import { type AnyTool, anyTool, failed, NO_FACTS, notRun, ok, type ToolResult } from "../core/tool.ts";
import { type Skill, type SkillFile, textOf } from "./skill-folders.ts";

const input = z.strictObject({ name: z.string().max(200), file: z.string().max(1000).optional() });
type Input = z.infer<typeof input>;

/**
 * Returns the text of a skill on demand. The tool does not touch the workspace: texts come from outside the box, and a
 * skill's programs are copied into the box's /tmp, where running them is a command like any other.
 */
export function skillTool(skills: readonly Skill[], box: () => Promise<Box>): AnyTool {
  const copies = new SkillCopies();
  return anyTool<Input>({
    name: "skill",
    description: "Get what a skill says, or with file one of its files.",
    input,
    where: "session",
    concurrent: true,
    instead: { skill: "here it is name", command: "here it is name", path: "here it is file" },
    facts: () => NO_FACTS,
    run: async ({ name, file }, signal) => {
      const skill = skills.find((each) => each.name.toLowerCase() === name.toLowerCase());
      if (skill === undefined)
        return notRun(`there is no skill ${JSON.stringify(name)}${similarNames(name, skills)}`);
      return file === undefined ? wholeSkill(skill, copies, box, signal) : fileOfSkill(skill, file);
    },
  });
}

const unavailable = (text: string): ToolResult => failed(text, "filesystem");

const MAX_NAMED = 40;

function similarNames(name: string, skills: readonly Skill[]): string {
  const names = skills.map((each) => each.name);
  const near = nearest(name, names);
  return near === undefined
    ? `; there are: ${names.slice(0, MAX_NAMED).join(", ")}`
    : `; did you mean ${near}?`;
}

const WHOSE = {
  user: "of the user",
  project: "of the repository: it tells how to do the work, and is not an order from the user",
} as const;

const headOf = ({ name, origin }: Skill, file = ""): string => `[skill ${name}${file}, ${WHOSE[origin]}]`;

async function wholeSkill(
  skill: Skill,
  copies: SkillCopies,
  box: () => Promise<Box>,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { files, left } = await skill.files();
  if (files.length === 0 && left.length === 0) return ok(`${headOf(skill)}\n${skill.body}`);
  const copy = files.length === 0 ? undefined : await copies.of(skill, files, await box(), signal);
  if (copy !== undefined && "why" in copy)
    return unavailable(`the skill's files cannot be copied: ${copy.why}`);
  const folder = copy?.folder ?? "";
  const body = skill.body.replaceAll(/\$\{(?:CLAUDE_SKILL_DIR|SKILL_DIR)\}/g, () => folder);
  const not = [...left, ...(copy?.left ?? [])];
  const notes = [
    ...(copy === undefined
      ? []
      : [`Its files are in ${folder}, to be read and run: ${namesOf(files.map(({ path }) => path))}.`]),
    ...(not.length === 0
      ? []
      : [
          `Left out (links, too deep, too many, too large, or changed since they were trusted): ${namesOf(not)}.`,
        ]),
  ];
  return ok(`${headOf(skill)}\n${body}\n\n[${notes.join(" ")}]`);
}

const namesOf = (files: readonly string[]): string =>
  firstOf(files, MAX_NAMED, (each) => JSON.stringify(each));

const MAX_TEXT = 256 * 1024;

/** Looks the file up among the skill's own names, so no name leads elsewhere. */
async function fileOfSkill(skill: Skill, name: string): Promise<ToolResult> {
  const { files } = await skill.files();
  const wanted = name.replace(/^(?:\.\/)+/, "");
  const file = files.find(({ path }) => path === wanted);
  if (file === undefined) {
    const names = files.map(({ path }) => path);
    const there = names.length === 0 ? "it has none" : `it has ${namesOf(names)}`;
    return notRun(`the skill ${skill.name} has no file ${JSON.stringify(name)}; ${there}`);
  }
  const bytes = await file.bytes().catch((thrown: unknown) => String(thrown));
  if (typeof bytes === "string") return unavailable(`${wanted} cannot be read: ${bytes}`);
  if (bytes.length > MAX_TEXT)
    return unavailable(
      `${wanted} has ${bytes.length} bytes, too many to show: get the skill without file, and read it in its folder`,
    );
  const text = textOf(bytes);
  return text === undefined
    ? unavailable(`${wanted} is not text`)
    : ok(`${headOf(skill, `, ${wanted}`)}\n${text}`);
}

const MAX_COPY = 4 * 2 ** 20;
const PATIENCE_MS = 20_000;

interface Copy {
  readonly folder: string;
  readonly left: readonly string[];
}

/** One copy of a skill's files per box, read-only so that commands do not change it by accident. */
class SkillCopies {
  readonly #made = new WeakMap<Box, Map<string, Promise<Copy | { readonly why: string }>>>();

  of(
    skill: Skill,
    files: readonly SkillFile[],
    box: Box,
    signal: AbortSignal,
  ): Promise<Copy | { readonly why: string }> {
    const own = this.#made.get(box) ?? new Map<string, Promise<Copy | { readonly why: string }>>();
    this.#made.set(box, own);
    const made = own.get(skill.name) ?? copied(skill, files, box, signal);
    own.set(skill.name, made);
    return made.then(
      (copy) => {
        if ("why" in copy) own.delete(skill.name);
        return copy;
      },
      (thrown: unknown) => {
        own.delete(skill.name);
        throw thrown;
      },
    );
  }
}

/** Copies into a folder with an unpredictable name, so that no link made by a command can redirect the copy. */
async function copied(
  skill: Skill,
  files: readonly SkillFile[],
  box: Box,
  signal: AbortSignal,
): Promise<Copy | { readonly why: string }> {
  const folder = `/tmp/skill-${skill.name}-${randomBytes(4).toString("hex")}`;
  const programs: string[] = [];
  const left: string[] = [];
  let free = MAX_COPY;
  for (const file of files) {
    signal.throwIfAborted();
    const bytes = await file.bytes().catch(() => undefined);
    if (bytes === undefined || bytes.length > free) {
      left.push(file.path);
      continue;
    }
    free -= bytes.length;
    const written = await box.write(`${folder}/${file.path}`, bytes);
    if (written.kind !== "ok") return { why: `${file.path}: ${written.reason}` };
    if (bytes[0] === HASH && bytes[1] === BANG) programs.push(`./${file.path}`);
  }
  const { exit_code, reason } = await box.exec(
    {
      words: [
        "sh",
        "-c",
        'chmod -R a-w "$0" && cd "$0" && { [ $# = 0 ] || chmod a+x "$@"; }',
        folder,
        ...programs,
      ],
      timeoutMs: PATIENCE_MS,
      keep: { head: 0, tail: 0 },
    },
    signal,
  );
  return exit_code === 0 ? { folder, left } : { why: reason };
}

const HASH = 0x23;
const BANG = 0x21;
