import { nearest } from "../../core/spelling.ts";

export interface SlashName {
  readonly name: string;
  /** Of its argument; none when left out. */
  readonly takes?: string;
  readonly says: string;
}

export type Slash =
  | { readonly kind: "text" }
  | { readonly kind: "leave" }
  | { readonly kind: "command"; readonly name: string; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string; readonly near: string | undefined };

const LEAVING = /^(?:quit|exit)$/i;
/** A path begins with a slash too, and goes on with one. */
const COMMAND = /^\/([A-Za-z-]*)(?:\s+(.*))?$/s;

/** What a line is: for the model, or for the chat itself. */
export function slashOf(line: string, known: readonly SlashName[]): Slash {
  const text = line.trim();
  if (LEAVING.test(text)) return { kind: "leave" };
  const match = COMMAND.exec(text);
  if (match === null) return { kind: "text" };
  const name = (match[1] ?? "").toLowerCase();
  if (LEAVING.test(name)) return { kind: "leave" };
  const names = known.map((each) => each.name);
  if (names.includes(name)) return { kind: "command", name, argument: (match[2] ?? "").trim() };
  return { kind: "unknown", name, near: nearest(name, [...names, "quit", "exit"]) };
}

/** For the tab key: the commands that begin so, then the values of a command that has some. */
export function completed(
  line: string,
  known: readonly SlashName[],
  values: Readonly<Record<string, readonly string[]>>,
): readonly [readonly string[], string] {
  if (!line.startsWith("/")) return [[], line];
  const [, name = "", given] = /^\/(\S*)(?:\s+(\S*))?$/.exec(line) ?? [];
  if (given !== undefined) return [(values[name] ?? []).filter((value) => value.startsWith(given)), given];
  const names = [...known.map((each) => each.name), "quit", "exit"].map((each) => `/${each}`);
  return [names.filter((each) => each.startsWith(line)), line];
}
