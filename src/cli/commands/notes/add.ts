import { Args, Flags } from "@oclif/core";
import { checkedNote, withNotes } from "../../../app/sessions/notes-access.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";
import { NOTE, promptFrom } from "../../terminal.ts";

export class NotesAdd extends HarnessCommand {
  static override summary = "Write a note that later runs in this folder can read.";
  static override description =
    "The words after the title are the text of the note; `-` reads the text from a pipe. Without them, the note is only its title. With --json, prints the note.";
  static override usage = "notes add [FLAGS] TITLE [TEXT...]";
  static override strict = false;
  static override args = {
    title: Args.string({ description: "title of the note, one line", required: true, ignoreStdin: true }),
    text: Args.string({ description: "text of the note; - reads it from a pipe", ignoreStdin: true }),
  };
  static override flags = {
    tag: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "word to find the note by",
      helpValue: "TAG",
    }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    'harness notes add "Build" "make all, then make check" --tag build',
    'harness notes add "Decisions" - < decisions.md',
  ];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(NotesAdd);
    const [title = "", ...words] = argv.map(String);
    const body = await promptFrom(words, "", NOTE);
    const text = checkedNote({ title, body, tags: flags.tag ?? [] });
    const note = await withNotes(this.host, workspaceOf(flags), ({ notes }) => notes.write(text));
    if (flags.json) answerJson(note);
    else answer(String(note.number));
  }
}
