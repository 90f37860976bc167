import { Keyboard } from "../../src/cli/terminal-input.ts";
import { sent } from "./terminal.ts";

export interface FakeKeyboard {
  readonly keyboard: Keyboard;
  /** Sends what a person types, or what the terminal sends for them. */
  readonly type: (text: string) => void;
  readonly hangUp: () => void;
  /** Operations on the terminal, and Ctrl-C that nobody read. */
  readonly told: string[];
}

export function fakeKeyboard({ busy = true } = {}): FakeKeyboard {
  const told: string[] = [];
  const listeners = new Map<string, (text: string) => void>();
  const keyboard = new Keyboard({
    input: {
      setRawMode: (on) => told.push(on ? "raw" : "cooked"),
      setEncoding: () => undefined,
      on: (event: string, listener: (text: string) => void) => listeners.set(event, listener),
      pause: () => told.push("paused"),
      resume: () => undefined,
    },
    write: (text) => told.push(JSON.stringify(sent(text))),
    onInterrupt: () => {
      if (busy) told.push("interrupt");
      return busy;
    },
    suspend: () => told.push("suspend"),
  });
  return {
    keyboard,
    type: (text) => listeners.get("data")?.(text),
    hangUp: () => listeners.get("end")?.(""),
    told,
  };
}
