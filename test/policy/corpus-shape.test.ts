import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/** The answers that a folder may ask for; another test judges the commands against them. */
const FOLDERS = [
  { folder: "attacks", wants: ["not-allow", "deny"] },
  { folder: "asks", wants: ["ask"] },
];
const MODES = new Set(["read-only", "workspace-write", "danger-full-access"]);
const ROOT = join(import.meta.dirname, "../fixtures/policy");

interface Line {
  readonly at: string;
  readonly text: string;
  readonly wants: readonly string[];
}

function lines(): Line[] {
  return FOLDERS.flatMap(({ folder, wants }) =>
    readdirSync(join(ROOT, folder)).flatMap((file) =>
      readFileSync(join(ROOT, folder, file), "utf8")
        .trimEnd()
        .split("\n")
        .map((text, index) => ({ at: `${folder}/${file}:${index + 1}`, text, wants })),
    ),
  );
}

/** What is wrong with a line, or nothing. */
function fault({ text, wants }: Line): string | undefined {
  if (!/^[\u0020-\u007e]+$/.test(text)) return "characters that need an escape";
  const {
    cmd,
    mode,
    want,
    class: kind,
    why,
    debatable,
    ...rest
  } = JSON.parse(text) as Record<string, unknown>;
  if (Object.keys(rest).length > 0) return "unknown field";
  if (![cmd, kind, why].every((value) => typeof value === "string" && value !== "")) return "missing text";
  if (!MODES.has(String(mode))) return "unknown mode";
  if (!wants.includes(String(want))) return "an answer of another folder";
  return debatable === undefined || debatable === true ? undefined : "debatable is true or absent";
}

test("every judged command has the fields and the answers of its folder", () => {
  const faults = lines().flatMap((line) => {
    const found = fault(line);
    return found === undefined ? [] : [`${line.at} ${found}`];
  });
  assert.deepEqual(faults, []);
});

test("no command occurs twice in the corpus", () => {
  const first = new Map<string, string>();
  const twice = lines().flatMap(({ at, text }) => {
    const { cmd } = JSON.parse(text) as { cmd: string };
    const before = first.get(cmd);
    first.set(cmd, before ?? at);
    return before === undefined ? [] : [`${at} is ${before}`];
  });
  assert.deepEqual(twice, []);
});
