import { Args } from "@oclif/core";
import { namedNote, withNotes } from "../../../app/sessions/notes-access.ts";
import { noteText } from "../../../render/sessions-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

export class NotesShow extends HarnessCommand {
  static override summary = "Show a whole note of this folder.";
  static override args = {
    note: Args.string({
      description: "note number, as shown by `harness notes list`",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = { cwd: settingFlags.cwd };
  static override examples = ["harness notes show 3", "harness notes show 3 --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(NotesShow);
    const note = await withNotes(this.host, workspaceOf(flags), (of) => namedNote(of, args.note));
    if (flags.json) answerJson(note);
    else answer(noteText(note, stdout));
  }
}
