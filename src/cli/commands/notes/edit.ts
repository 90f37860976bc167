import { Args, Flags } from "@oclif/core";
import {
  checkedNote,
  editByHand,
  type FolderNotes,
  namedNote,
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
  static override summary = "Change a note of this folder, in your editor or on the command line.";
  static override description =
    "With nothing but a number, on a terminal, opens the note in $VISUAL or $EDITOR (otherwise vi). The words after the number are the new text; `-` reads the text from a pipe. What you do not give stays as it is. A note that changed while you edited it is not overwritten: what you wrote is kept in a file, and the file is named. With --json, prints the note.";
  static override usage = "notes edit [FLAGS] NOTE [TEXT...]";
  static override strict = false;
  static override args = {
    note: Args.string({
      description: "note number, as shown by `harness notes list`",
      required: true,
      ignoreStdin: true,
    }),
    text: Args.string({ description: "new text; - reads it from a pipe", ignoreStdin: true }),
  };
  static override flags = {
    title: Flags.string({ description: "new title", helpValue: "TITLE" }),
    tag: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "tag that replaces the present tags",
      helpValue: "TAG",
      exclusive: ["no-tags"],
    }),
    "no-tags": Flags.boolean({ description: "remove all tags" }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness notes edit 3",
    'harness notes edit 3 "make all" --tag build',
    "harness notes edit 3 - < build.md",
  ];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(NotesEdit);
    const [typed = "", ...words] = argv.map(String);
    const { title, json, quiet } = flags;
    const tags = flags["no-tags"] ? [] : flags.tag;
    const byHand = words.length === 0 && title === undefined && tags === undefined;
    if (byHand && !isTerminal())
      throw new HarnessError(
        EXIT.usage,
        "there is no terminal for an editor, and no change was given",
        'harness notes edit NOTE "the new text"',
      );
    const note = await withNotes(this.host, workspaceOf(flags), async (of): Promise<Note | "unchanged"> => {
      const before = namedNote(of, typed);
      if (byHand) return editByHand(of, before);
      const body = words.length === 0 ? before.body : await promptFrom(words, undefined, NOTE);
      return changeNote(of, typed, {
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
function changeNote(
  of: FolderNotes,
  typed: string,
  changes: Partial<Pick<Note, "title" | "body" | "tags">>,
): Note {
  const before = namedNote(of, typed);
  return replaceNote(of, before, checkedNote({ ...before, ...changes }));
}
