import { CanaryTouched, EXIT } from "../../core/errors.ts";
import type { Emit } from "../../core/events.ts";
import { installs } from "../../core/network.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { visibleLine } from "../../core/visible.ts";
import { truncate } from "../../core/wording.ts";
import type { BoxOpening } from "../boxes/box-access.ts";
import { connectionEvent, LazyBox, type LazyOptions, readyEvent } from "./lazy-box.ts";

/** A box that an agent works in: it starts when it is first needed, and events report it. */

export type AgentBoxOpening = Omit<BoxOpening, "watchChanges" | "onConnection">;

interface AgentBoxOptions extends Pick<LazyOptions, "remedy" | "warn"> {
  /** Receives the errors that kept the box from starting. */
  readonly failed?: ((thrown: unknown) => void) | undefined;
}

/** `opening` is asked at each start, because a lost box is replaced, and a person may have changed settings. */
export function agentBox(
  opening: () => AgentBoxOpening,
  emit: Emit,
  { failed, ...options }: AgentBoxOptions,
): LazyBox {
  const start: Start = async (signal, end) => {
    try {
      return await openAgentBox(opening(), { emit, end }, signal);
    } catch (thrown) {
      failed?.(thrown);
      throw thrown;
    }
  };
  return new LazyBox(start, (ms, ready) => emit(readyEvent(ms, ready)), {
    ...options,
    tell: (text) => emit({ type: "notice", text }),
    installs: opening().settings.allow_domains.some(installs),
  });
}

type Start = ConstructorParameters<typeof LazyBox>[0];

interface CanaryWatch {
  readonly emit: Emit;
  /** Ends the run. */
  readonly end: Parameters<Start>[1];
}

/** The changes of the box are watched, and it holds canaries unless the settings want none. */
async function openAgentBox(
  opening: AgentBoxOpening,
  watch: CanaryWatch,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { openBoxFor } = await import("../boxes/box-access.ts");
  const { emit } = watch;
  const onConnection: BoxOpening["onConnection"] = (connection) => emit(connectionEvent(connection));
  const box = await openBoxFor({ ...opening, watchChanges: true, onConnection }, signal);
  return opening.settings.canaries ? withCanaries(box, watch) : box;
}

/** The box with canaries in it; a touch by any of its commands is reported, and ends the run. */
async function withCanaries(box: OwnedBox, { emit, end }: CanaryWatch): Promise<OwnedBox> {
  const { canaryBox, plantCanaries } = await import("../../boxes/canaries.ts");
  const canaries = await plantCanaries(box);
  return canaryBox(box, canaries, ({ canary, path, command, by }) => {
    const programs = by.map((words) => commandText(words));
    emit({ type: "canary", canary, path: visibleLine(path), command: commandText(command), by: programs });
    const way = programs.length === 0 ? "" : `, by ${programs.join(" > ")}`;
    end(new CanaryTouched(EXIT.failed, `A canary was touched: ${canary} (${visibleLine(path)})${way}`));
  });
}

const MAX_COMMAND_LENGTH = 200;

function commandText(words: readonly string[]): string {
  const line = visibleLine(words.join(" "));
  return truncate(line, MAX_COMMAND_LENGTH);
}
