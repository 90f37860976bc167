import { Args, Flags } from "@oclif/core";
import {
  checkedNote,
  editByHand,
  type FolderNotes,
  noteGiven,
  replaceNote,
  withNotes,
} from "../../../app/sessions/notes-access.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { Note } from "../../../core/session.ts";
import { stderr } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";
import { isTerminal, NOTE, promptFrom } from "../../terminal.ts";

export class NotesEdit extends HarnessCommand {
  static override summary = "Change a note of this folder: in your editor, or by what is said here.";
  static override description =
    "With nothing but its number, at a terminal, it is opened in $VISUAL or $EDITOR (else vi). The words behind the number are its new text, or what is piped in for `-`; what is not said stays. A note that changed while you edited it is not written over: what you wrote is kept in a file, and named. With --json, the note.";
  static override usage = "notes edit [FLAGS] NOTE [TEXT...]";
  static override strict = false;
  static override args = {
    note: Args.string({
      description: "its number, as `harness notes list` shows it",
      required: true,
      ignoreStdin: true,
    }),
    text: Args.string({ description: "its new text; - reads it from a pipe", ignoreStdin: true }),
  };
  static override flags = {
    title: Flags.string({ description: "its new title", helpValue: "TITLE" }),
    tag: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "a tag, in place of those it has",
      helpValue: "TAG",
      exclusive: ["no-tags"],
    }),
    "no-tags": Flags.boolean({ description: "take its tags away" }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness notes edit 3",
    'harness notes edit 3 "make all" --tag build',
    "harness notes edit 3 - < build.md",
  ];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(NotesEdit);
    const [given = "", ...words] = argv.map(String);
    const { title, json, quiet } = flags;
    const tags = flags["no-tags"] ? [] : flags.tag;
    const byHand = words.length === 0 && title === undefined && tags === undefined;
    if (byHand && !isTerminal())
      throw new HarnessError(
        EXIT.usage,
        "there is no terminal for an editor, and nothing was said to change",
        'harness notes edit NOTE "the new text"',
      );
    const note = await withNotes(this.host, workspaceOf(flags), async (of): Promise<Note | "unchanged"> => {
      const before = noteGiven(of, given);
      if (byHand) return editByHand(of, before);
      const body = words.length === 0 ? before.body : await promptFrom(words, undefined, NOTE);
      return changed(of, given, {
        ...(title === undefined ? {} : { title }),
        ...(tags === undefined ? {} : { tags }),
        body,
      });
    });
    if (note === "unchanged") {
      if (!quiet) stderr.write("nothing was changed\n");
    } else if (json) answerJson(note);
    else answer(String(note.number));
  }
}

/** Reads the note again, because piped input may take its time. */
function changed(of: FolderNotes, given: string, said: Partial<Pick<Note, "title" | "body" | "tags">>): Note {
  const before = noteGiven(of, given);
  return replaceNote(of, before, checkedNote({ ...before, ...said }));
}
