import type { Note } from "../../core/session.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "../tty/output.ts";

const dayOf = ({ written }: Note): string => new Date(written).toISOString().slice(0, 10);

/** One line per note. */
export function noteLines(notes: readonly Note[], stream: Output): string {
  const width = Math.max(...notes.map(({ number }) => String(number).length));
  return notes
    .map((note) => {
      const tags = note.tags.length === 0 ? "" : `  ${styleText("dim", tagsOf(note), { stream })}`;
      return `${String(note.number).padStart(width)}  ${dayOf(note)}  ${visibleLine(note.title)}${tags}\n`;
    })
    .join("");
}

const tagsOf = ({ tags }: Note): string => tags.map((tag) => `#${visibleLine(tag)}`).join(" ");

/** A whole note. */
export function noteText(note: Note, stream: Output): string {
  const about = [`note ${note.number}`, dayOf(note), ...(note.tags.length === 0 ? [] : [tagsOf(note)])];
  const head = [
    styleText("bold", visibleLine(note.title), { stream }),
    styleText("dim", about.join(", "), { stream }),
  ];
  return `${[...head, ...(note.body === "" ? [] : ["", visible(note.body)])].join("\n")}\n`;
}
