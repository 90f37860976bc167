import { Args, Flags } from "@oclif/core";
import { checkedNote, withNotes } from "../../../app/sessions/notes-access.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";
import { NOTE, promptFrom } from "../../terminal.ts";

export class NotesAdd extends HarnessCommand {
  static override summary = "Write a note that later runs of this folder can read.";
  static override description =
    "The words behind the title are its text, or what is piped in for `-`; without them the title is all of it. With --json, the note.";
  static override usage = "notes add [FLAGS] TITLE [TEXT...]";
  static override strict = false;
  static override args = {
    title: Args.string({ description: "one line", required: true, ignoreStdin: true }),
    text: Args.string({ description: "what is to be known; - reads it from a pipe", ignoreStdin: true }),
  };
  static override flags = {
    tag: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "a word to find it by",
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
