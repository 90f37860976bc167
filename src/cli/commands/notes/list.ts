import { Flags } from "@oclif/core";
import { notesAbout, withNotes } from "../../../app/sessions/notes-access.ts";
import { noteLines } from "../../../render/sessions-lines.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

export class NotesList extends HarnessCommand {
  static override summary = "List the notes of this folder, newest first.";
  static override description =
    "Notes are what you and the model (with its tool `note`) keep for later runs in a folder; the model reads them when it asks for them. --query searches title, text and tags, and ignores case. With --json, prints one object per line, including the text.";
  static override flags = {
    query: Flags.string({ description: "list only notes that say this", helpValue: "TEXT" }),
    tag: Flags.string({ description: "list only notes with this tag", helpValue: "TAG" }),
    limit: Flags.integer({ description: "maximum number of notes", helpValue: "N", min: 1, default: 50 }),
    cwd: settingFlags.cwd,
  };
  static override examples = ["harness notes list", "harness notes list --tag build --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(NotesList);
    const { query = "", tag, limit, json } = flags;
    const found = await withNotes(this.host, workspaceOf(flags), (of) =>
      notesAbout(of, { query, tag, limit: limit + 1 }),
    );
    const shown = found.slice(0, limit);
    if (json) for (const note of shown) answerJson(note);
    else if (shown.length > 0) answer(noteLines(shown, stdout));
    else if (!flags.quiet) stderr.write(emptyText(query, tag));
    if (found.length > shown.length && !flags.quiet)
      stderr.write("there are more notes; next: --limit N or --query TEXT\n");
  }
}

const emptyText = (query: string, tag: string | undefined): string =>
  query === "" && tag === undefined
    ? 'there are no notes here; next: harness notes add "TITLE" "TEXT"\n'
    : "no note here matches; next: harness notes list\n";
