import { stderr, stdout, styleText } from "../../render/tty/output.ts";
import { visible } from "../../core/visible.ts";
import { questionsOn, saysYes } from "../approval-question.ts";
import { inTurn, personOn } from "../asked-person.ts";
import { ChatView } from "../chat-view.ts";
import { Keyboard, Prompt } from "../terminal-input.ts";
import type { ChatScreen, ScreenParts } from "./chat-screen.ts";

/** Lines below each other, as they come: for a terminal that cannot do more, a screen reader, or by preference. */
export function plainScreen(parts: ScreenParts): ChatScreen {
  stdout.neverBlocks();
  stderr.neverBlocks();
  const view = new ChatView(stdout, stderr, parts.quiet);
  const keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => stdout.write(text),
    onInterrupt: parts.onInterrupt,
    suspend: () => process.kill(process.pid, "SIGTSTP"),
  });
  const terminal = { keyboard, output: stdout, pause: () => view.pause() };
  const turns = inTurn();
  const question = questionsOn({ ...terminal, rulesFor: parts.rulesFor, edits: true });
  const words = personOn({ ...terminal, cancel: parts.cancel });
  const prompt = new Prompt(keyboard, stdout, (line) => parts.files(line) ?? parts.complete(line));
  return {
    take: (event) => view.take(event),
    end: () => view.end(),
    line: (initial) => prompt.ask(initial),
    ask: (asked, signal) => turns(() => question(asked, signal)),
    askInWords: (asked, signal) => turns(() => words(asked, signal)),
    confirm: (text) =>
      turns(() => saysYes(terminal, `${styleText("bold", visible(text), { stream: stdout })} [y/N] `)),
    remember: (texts) => prompt.remember(texts),
    interrupt: () => keyboard.interrupt(),
    resume: () => {
      keyboard.resume();
      prompt.redraw();
    },
    close: () => view.close(),
    leave: () => keyboard.end(),
    [Symbol.dispose]: () => keyboard[Symbol.dispose](),
  };
}
