import type { Note, Notes, NoteText, OutputPage, Outputs } from "../../src/core/session.ts";
import type { ToolResult } from "../../src/core/tool.ts";
import type { TaskPart, ToolContext, ShellState, Subagents } from "../../src/tools/tool-context.ts";

export interface MemoryOutputs extends Outputs {
  readonly kept: readonly string[];
}

/** Keeps outputs as the store does: `o1`, `o2`, …; an offset inside a character moves to its start. */
export function memoryOutputs(): MemoryOutputs {
  const kept: string[] = [];
  return {
    kept,
    keep: (text) => `o${kept.push(text)}`,
    page: (id, offset, limit) => {
      const text = kept[Number(/^o(\d+)$/.exec(id)?.[1] ?? 0) - 1];
      return text === undefined ? undefined : pageOf(text, offset, limit);
    },
  };
}

function pageOf(text: string, from: number, limit: number): OutputPage {
  const whole = (at: number): number => (at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff ? at - 1 : at);
  const offset = whole(Math.min(from, text.length));
  const end = whole(Math.min(offset + limit, text.length));
  return { text: text.slice(offset, end), offset, end, total: text.length };
}

export function memoryNotes(now?: () => number): Notes {
  let notes: readonly Note[] = [];
  let last = 0;
  const at = (): number => now?.() ?? Date.UTC(2026, 10, 21) + last;
  return {
    write: ({ title, body, tags }) => {
      const note = { number: (last += 1), title, body, tags, written: at() };
      notes = [note, ...notes];
      return note;
    },
    find: (query, limit) =>
      notes
        .filter(({ title, body, tags }) =>
          [title, body, ...tags].join("\n").toLowerCase().includes(query.toLowerCase()),
        )
        .slice(0, limit),
    get: (number) => notes.find((note) => note.number === number),
    replace: (before, { title, body, tags }) => {
      const found = notes.find((note) => note.number === before.number);
      if (found === undefined || noteText(found) !== noteText(before)) return false;
      const after = { number: found.number, title, body, tags, written: at() };
      notes = [after, ...notes.filter((note) => note !== found)];
      return true;
    },
    remove: (number) => {
      const kept = notes.filter((note) => note.number !== number);
      const removed = kept.length < notes.length;
      notes = kept;
      return removed;
    },
  };
}

const noteText = ({ title, body, tags }: NoteText): string => JSON.stringify([title, body, tags]);

function memoryShell(start: string): ShellState {
  const state = { folder: start, env: {} as Readonly<Record<string, string>> };
  return {
    get folder() {
      return state.folder;
    },
    get env() {
      return state.env;
    },
    move: (folder, env) => void Object.assign(state, { folder, env }),
  };
}

/** Subagents that all behave the same; none runs in the background. */
export const fakeSubagents = (run: (part: TaskPart) => Promise<ToolResult>): Subagents => ({
  run,
  begin: ({ prompt }) => ({ kind: "ok", text: `begun: ${prompt}` }),
  look: (look) => Promise.resolve({ kind: "ok", text: JSON.stringify(look) }),
});

export interface FakeToolContext extends ToolContext {
  /** What the model knows, by absolute path. */
  readonly known: Map<string, string>;
}

/** A context entirely in memory. */
export function fakeToolContext(over: Partial<ToolContext> = {}): FakeToolContext {
  const workspace = over.workspace ?? "/repo";
  const known = new Map<string, string>();
  return {
    agent: "main",
    workspace,
    known,
    seen: {
      hashOf: (path) => known.get(path),
      saw: (path, hash) => void known.set(path, hash),
      forget: (path) => void known.delete(path),
    },
    shell: memoryShell(workspace),
    outputs: memoryOutputs(),
    notes: memoryNotes(),
    timeoutMs: 120_000,
    ...over,
  };
}
