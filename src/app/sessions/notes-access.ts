import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Note, NOTE_BOUNDS, type Notes, type NoteText } from "../../core/session.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { runOnTerminal } from "../../platform/host-programs.ts";
import { WHOLE_TERMINAL } from "../../render/tty/output.ts";
import type { Host } from "../host.ts";
import { sessionsWorkspace, withSessions } from "./session-access.ts";

/** The notes of a folder, for one command. */
export interface FolderNotes {
  readonly host: Host;
  readonly workspace: string;
  readonly notes: Notes;
}

export async function withNotes<T>(
  host: Host,
  folder: string,
  work: (of: FolderNotes) => T | Promise<T>,
): Promise<T> {
  const workspace = await sessionsWorkspace(folder);
  return withSessions(host, (store) => work({ host, workspace, notes: store.notes(workspace) }));
}

/** The note that a person named; exit 2 if there is none. */
export function namedNote({ notes, workspace }: FolderNotes, typed: string): Note {
  const found = /^[1-9]\d{0,14}$/.test(typed) ? notes.get(Number(typed)) : undefined;
  if (found !== undefined) return found;
  const why = /^\d+$/.test(typed)
    ? `no note of ${visible(workspace)} has the number ${typed}`
    : `${visibleLine(JSON.stringify(typed))} is not the number of a note`;
  throw new HarnessError(EXIT.usage, why, "harness notes list");
}

/** Newest first. A tag must match as a whole, ignoring case. */
export function notesAbout(
  { notes }: FolderNotes,
  { query, tag, limit }: { readonly query: string; readonly tag: string | undefined; readonly limit: number },
): readonly Note[] {
  if (tag === undefined) return notes.find(query, limit);
  const wanted = tag.toLowerCase();
  return notes
    .find(query, Infinity)
    .filter(({ tags }) => tags.some((each) => each.toLowerCase() === wanted))
    .slice(0, limit);
}

/** The text in the form that the store accepts, with duplicate tags removed; exit 2 if something is too long. */
export function checkedNote({ title, body, tags }: NoteText): NoteText {
  const text = {
    title: title.trim(),
    body,
    tags: [...new Set(tags.map((tag) => tag.trim()))].filter((tag) => tag !== ""),
  };
  const wrong =
    text.title === ""
      ? "it has no title"
      : /\n/.test(text.title)
        ? "its title has more than one line"
        : text.title.length > NOTE_BOUNDS.title
          ? `its title is longer than ${NOTE_BOUNDS.title} characters`
          : text.body.length > NOTE_BOUNDS.body
            ? `it is longer than ${NOTE_BOUNDS.body} characters`
            : wrongTags(text.tags);
  if (wrong === undefined) return text;
  throw new HarnessError(EXIT.usage, `the note cannot be saved: ${wrong}`, "harness notes add --help");
}

function wrongTags(tags: readonly string[]): string | undefined {
  if (tags.length > NOTE_BOUNDS.tags) return `it has more than ${NOTE_BOUNDS.tags} tags`;
  const odd = tags.find((tag) => tag.length > NOTE_BOUNDS.tag || /[,\n]/.test(tag));
  return odd === undefined
    ? undefined
    : `${visibleLine(JSON.stringify(odd))} is not a valid tag: at most ${NOTE_BOUNDS.tag} characters, no comma`;
}

/** Replaces the note and returns it; exit 1 if somebody else changed it first. */
export function replaceNote({ notes }: FolderNotes, before: Note, text: NoteText): Note {
  if (notes.replace(before, text)) return notes.get(before.number) ?? { ...before, ...text };
  throw new HarnessError(
    EXIT.failed,
    `note ${before.number} was changed or removed meanwhile; nothing was written`,
    `harness notes show ${before.number}`,
  );
}

/** Opens the user's editor on the note. The text is never lost: if it cannot be kept as a note, its file stays. */
export async function editByHand(of: FolderNotes, note: Note): Promise<Note | "unchanged"> {
  const { host, workspace } = of;
  const folder = await mkdtemp(path.join(host.places.state, "note-"));
  const file = path.join(folder, `note-${note.number}.md`);
  const before = noteDocument(note);
  await writeFile(file, before, { mode: 0o600 });
  let text = before;
  try {
    await edited(file, host, workspace, note.number);
    text = await readFile(file, "utf8");
    const after = text === before ? "unchanged" : replaceNote(of, note, checkedNote(noteIn(text)));
    await rm(folder, { recursive: true, force: true });
    return after;
  } catch (thrown) {
    text = await readFile(file, "utf8").catch(() => text);
    if (text === before) await rm(folder, { recursive: true, force: true });
    if (text === before || !(thrown instanceof HarnessError)) throw thrown;
    throw new HarnessError(
      thrown.exit,
      `${reasonOf(thrown)}; what you wrote is in ${file}`,
      thrown.remedy,
      thrown,
    );
  }
}

async function edited(file: string, { env }: Host, workspace: string, number: number): Promise<void> {
  const [program = "vi", ...words] = (env["VISUAL"] || env["EDITOR"] || "vi").trim().split(/\s+/);
  // A folder of its own, because editors obey files in the folder that they start in.
  const ended = await runOnTerminal([program, ...words, file], {
    env,
    cwd: path.dirname(file),
    apart: workspace,
    stdio: WHOLE_TERMINAL,
  });
  const next = `EDITOR=nano harness notes edit ${number}, or give the text: harness notes edit ${number} "…"`;
  if (ended === null) throw new HarnessError(EXIT.usage, `there is no editor ${visibleLine(program)}`, next);
  if (ended.code !== 0)
    throw new HarnessError(
      EXIT.failed,
      `${visibleLine(program)} exited with ${ended.code ?? "a signal"}: the note is unchanged`,
      next,
    );
}

/** A note as a person edits it: a title line, a tags line, an empty line, and the text. */
const noteDocument = ({ title, body, tags }: NoteText): string =>
  `title: ${title}\ntags: ${tags.join(", ")}\n\n${body}${body.endsWith("\n") ? "" : "\n"}`;

function noteIn(document: string): NoteText {
  const [first = "", second = "", ...rest] = document.replaceAll("\r\n", "\n").split("\n");
  const title = /^title:(.*)$/.exec(first)?.[1];
  const tags = /^tags:(.*)$/.exec(second)?.[1];
  if (title === undefined || tags === undefined)
    throw new HarnessError(
      EXIT.usage,
      "the note cannot be read: its first line must be title: …, its second tags: …",
      "harness notes list",
    );
  const body = rest.join("\n").replace(/^\n/, "").trimEnd();
  return { title, body, tags: tags.split(",") };
}
