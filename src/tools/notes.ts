/** The tools note and notes: what outlasts a session about a workspace. */

import * as z from "zod";
import { type Note, NOTE_BOUNDS } from "../core/session.ts";
import { type AnyTool, anyTool, NO_FACTS, notRun, type ToolResult } from "../core/tool.ts";
import { lenientInput, listOf, type ToolContext } from "./tool-context.ts";

const noteInput = lenientInput(
  z.strictObject({
    title: z.string().min(1).max(NOTE_BOUNDS.title),
    body: z.string().max(NOTE_BOUNDS.body),
    tags: listOf(z.string().max(NOTE_BOUNDS.tag)).optional(),
  }),
);
type NoteInput = z.infer<typeof noteInput>;

const UNTITLED = notRun("title: it is blank; say in one line what the note is about");

/** Stores a note about the workspace that outlasts the session. */
export function noteTool({ notes }: Pick<ToolContext, "notes">): AnyTool {
  return anyTool<NoteInput>({
    name: "note",
    description: "Save a note about this project for later sessions.",
    input: noteInput,
    where: "session",
    concurrent: false,
    facts: () => NO_FACTS,
    run: ({ title: typed, body, tags = [] }) => {
      const title = typed.replace(/\s+/g, " ").trim();
      if (title === "") return Promise.resolve(UNTITLED);
      notes.write({ title, body, tags: tags.slice(0, NOTE_BOUNDS.tags) });
      return Promise.resolve({ kind: "ok", text: `noted: ${title}` });
    },
  });
}

const MAX_NOTES = 10;
const MAX_CHARACTERS = 8000;

const notesInput = lenientInput(z.strictObject({ query: z.string().optional() }));
type NotesInput = z.infer<typeof notesInput>;

/** The notes about the workspace, newest first. */
export function notesTool({ notes }: Pick<ToolContext, "notes">): AnyTool {
  return anyTool<NotesInput>({
    name: "notes",
    description: "Read saved notes, newest first; query: a word in them.",
    input: notesInput,
    where: "session",
    concurrent: true,
    facts: () => NO_FACTS,
    run: ({ query = "" }) => Promise.resolve(noteList(notes.find(query, MAX_NOTES + 1), query)),
  });
}

function noteList(found: readonly Note[], query: string): ToolResult {
  if (found.length === 0)
    return { kind: "ok", text: query === "" ? "no notes yet" : `no note has ${JSON.stringify(query)}` };
  const shown = textsThatFit(found.slice(0, MAX_NOTES).map(noteText));
  const more = found.length > shown.length ? ["[there are more: give a query]"] : [];
  return { kind: "ok", text: [...shown, ...more].join("\n\n") };
}

function noteText({ title, body, tags, written }: Note): string {
  const day = new Date(written).toISOString().slice(0, 10);
  return `# ${title} (${[day, ...tags].join(", ")})\n${body}`;
}

/** As many whole notes as fit; if not even the first fits, its beginning. */
function textsThatFit(texts: readonly string[]): readonly string[] {
  let left = MAX_CHARACTERS;
  const shown: string[] = [];
  for (const text of texts) {
    left -= text.length;
    if (left < 0) break;
    shown.push(text);
  }
  const [first = ""] = texts;
  return shown.length > 0 ? shown : [`${first.slice(0, MAX_CHARACTERS).toWellFormed()}…`];
}
