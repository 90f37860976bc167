import { Args } from "@oclif/core";
import { namedNote, withNotes } from "../../../app/sessions/notes-access.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

export class NotesRemove extends HarnessCommand {
  static override summary = "Remove notes of this folder.";
  static override description =
    "If one of several notes is not known, none is removed. You cannot undo this. With --json, prints one object per removed note, including its text.";
  static override usage = "notes remove NOTE...";
  static override strict = false;
  static override args = {
    note: Args.string({ description: "note number, as shown by `harness notes list`", ignoreStdin: true }),
  };
  static override flags = { cwd: settingFlags.cwd };
  static override examples = ["harness notes remove 3", "harness notes remove 3 5"];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(NotesRemove);
    if (argv.length === 0) throw new HarnessError(EXIT.usage, "no note was given", "harness notes list");
    const removed = await withNotes(this.host, workspaceOf(flags), (of) => {
      const found = new Map(
        argv.map((typed) => namedNote(of, String(typed))).map((note) => [note.number, note]),
      );
      return [...found.values()].filter(({ number }) => of.notes.remove(number));
    });
    for (const note of removed)
      if (flags.json) answerJson(note);
      else answer(String(note.number));
  }
}
