import { visible } from "../../core/visible.ts";
import { widthOfStream, wrapped } from "../../render/tty/fitted.ts";
import { describeFailure, renderFailure } from "../failure.ts";
import { besides, closing } from "./closing.ts";
import { Handed } from "./handed.ts";
import { COMMANDS } from "./commands.ts";
import type { Prompt } from "./prompt.ts";
import { requestsIn } from "./recall.ts";
import type { Room } from "./room.ts";
import { slashOf } from "./slash.ts";
import { isStyled, type Output, styleText } from "../../render/tty/output.ts";

export interface ChatParts {
  readonly room: Room;
  readonly prompt: Prompt;
  readonly output: Output;
  readonly errors: Output;
  /** Somebody has ended it from outside. */
  readonly over: () => boolean;
}

/** Tables keep their columns as long as there is room for them. */
function fittedLines(text: string, stream: Output): string {
  const width = widthOfStream(stream);
  const fits = (line: string): boolean => line.length < width || isStyled(line);
  return text
    .split("\n")
    .flatMap((line) => (fits(line) ? line : wrapped(line, width - 1)))
    .join("\n");
}

/** Line after line of a person, until they leave. */
export class Chat {
  readonly #parts: ChatParts;
  /** Ctrl-C at an empty prompt: the first one says how to leave. */
  #warned = false;
  /** A request that nothing came of is offered again. */
  readonly #handed = new Handed();
  #initial = "";

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { prompt, over } = this.#parts;
    while (!over()) {
      const line = await prompt.ask(this.#initial);
      this.#initial = "";
      if (line.kind === "end") return;
      if (line.kind === "interrupt") {
        if (line.empty && this.#warned) return;
        if (line.empty) this.#tell("Ctrl-D or exit leaves");
        this.#warned = line.empty;
        continue;
      }
      this.#warned = false;
      if ((await this.#take(line.text)) === "leave") return;
    }
  }

  async #take(text: string): Promise<"leave" | undefined> {
    if (text.trim() === "") return undefined;
    const slash = slashOf(text, COMMANDS);
    if (slash.kind === "leave") return "leave";
    if (slash.kind === "unknown")
      this.#tell(
        `there is no /${visible(slash.name)}${slash.near === undefined ? "; /help lists what there is" : `; did you mean /${slash.near}?`}`,
      );
    else if (slash.kind === "command") await this.#command(slash.name, slash.argument);
    else await this.#request(text);
    return undefined;
  }

  async #command(name: string, argument: string): Promise<void> {
    const { room, prompt, output } = this.#parts;
    const before = room.talk;
    await this.#orSay(async () => {
      const command = COMMANDS.find((each) => each.name === name);
      const text = (await command?.run(room, argument, output)) ?? "";
      if (text !== "") output.write(`${fittedLines(text, output)}\n`);
    });
    if (room.talk !== before && room.talk !== undefined)
      prompt.remember(requestsIn(room.talk.memory.history.messages));
  }

  async #request(text: string): Promise<void> {
    const { room, errors, over } = this.#parts;
    const count = (): number => room.talk?.memory.history.count ?? 0;
    const before = count();
    await this.#orSay(async () => {
      const finished = await room.request(text);
      // Told to the last: what was moved away is not found again by whoever was not told.
      errors.write(besides(finished, errors));
      if (!over()) errors.write(closing(finished, errors) + this.#handed.lines(finished.handoff, errors));
    });
    if (!over()) errors.write("\n");
    if (count() <= before) this.#initial = text;
  }

  /** Nothing that goes wrong with one line ends the chat. */
  async #orSay(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!this.#parts.over()) renderFailure(describeFailure(thrown, []), false);
    }
  }

  #tell(text: string): void {
    this.#parts.errors.write(`${styleText("dim", text, { stream: this.#parts.errors })}\n`);
  }
}
