import { open, readdir } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { MODES, VERDICTS } from "../core/decision.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { parsedJson } from "../core/text/json-values.ts";
import { linesIn } from "../core/text/line-diff.ts";

const place = z.string().refine((value) => path.isAbsolute(value));

/**
 * A command that was judged in a session. Its line in the audit:
 * `{"kind":"decision","ts":ISO time,"session":ID,"command":text,"mode":…,"workspace":absolute,"folder"?:absolute,"decision":…}`;
 * other keys of the line are ignored. Without `session`, the session is the one named by the file.
 */
const judgementForm = z.object({
  kind: z.literal("decision"),
  ts: z.string().refine((value) => !Number.isNaN(Date.parse(value))),
  session: z.string().optional(),
  command: z.string(),
  mode: z.enum(MODES),
  workspace: place,
  /** The folder in which the command started; left out if it is the workspace. */
  folder: place.optional(),
  decision: z.enum(VERDICTS),
});

export type PastJudgement = z.infer<typeof judgementForm> & { readonly session: string };

/** What was left out while reading, and why. */
export interface Counts {
  sessions: number;
  /** Lines about something other than a judged command. */
  skipped: number;
  /** Lines that are not JSON. */
  unreadable: number;
  /** Files whose last line is incomplete: the session was killed or is still writing. */
  torn: number;
}

export const noCounts = (): Counts => ({ sessions: 0, skipped: 0, unreadable: 0, torn: 0 });

/** All judged commands of all sessions in the state folder, file by file. Updates `counts` along the way. */
export async function* pastJudgements(state: string, counts: Counts): AsyncGenerator<PastJudgement> {
  const folder = path.join(state, "audit");
  for (const name of await namesIn(folder)) {
    counts.sessions += 1;
    yield* judgementsIn(path.join(folder, name), counts);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
      .map(({ name }) => name)
      .toSorted();
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw unreadable(folder, thrown);
  }
}

const unreadable = (file: string, thrown: unknown): HarnessError =>
  new HarnessError(EXIT.usage, `${file}: cannot be read: ${reasonOf(thrown)}`, `ls -ld ${file}`, thrown);

async function* judgementsIn(file: string, counts: Counts): AsyncGenerator<PastJudgement> {
  await using handle = await open(file).catch((thrown: unknown) => {
    throw unreadable(file, thrown);
  });
  let broken = false;
  for await (const line of linesIn(handle.createReadStream())) {
    // Only the last line can be torn: if another line follows, this one is unreadable instead.
    if (broken) counts.unreadable += 1;
    const value = parsedJson(line);
    broken = value === undefined;
    if (value === undefined) continue;
    const judged = judgementFrom(value, path.basename(file, ".jsonl"));
    if (judged === undefined) counts.skipped += 1;
    else yield judged;
  }
  if (broken) counts.torn += 1;
}

function judgementFrom(value: unknown, file: string): PastJudgement | undefined {
  const { data } = judgementForm.safeParse(value);
  return data === undefined ? undefined : { ...data, session: data.session ?? file };
}
