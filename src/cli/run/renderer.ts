import { maskSecrets } from "../../core/secrets.ts";
import type { AgentEvent } from "../../core/events.ts";
import { cleaned } from "../../render/cleaned.ts";
import { RunJson } from "../../render/run-json.ts";
import { systemClock } from "../../render/tty/live-status.ts";
import { RunLines } from "../../render/tty/run-lines.ts";
import { runSummary } from "../../render/tty/run-summary.ts";
import { stderr, stdout } from "../../render/tty/output.ts";

export interface Renderer {
  take(event: AgentEvent): void;
  end(): void;
}

interface Wanted {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly changes: "here" | "waiting" | "gone";
}

/** For `run`: lines and a summary on stderr, or with --json every event on stdout. */
export function rendererFor(wanted: Wanted): Renderer {
  return wanted.json ? asJson() : asLines(wanted);
}

function asJson(): Renderer {
  const lines = new RunJson(maskSecrets);
  return {
    take: (event) => void stdout.write(lines.take(event)),
    end: () => void stdout.write(lines.end()),
  };
}

function asLines({ quiet, changes }: Wanted): Renderer {
  const began = performance.now();
  const lines = new RunLines(stderr, { quiet, answerIsSeen: false, clock: systemClock });
  return {
    take: (told) => {
      const event = cleaned(told, maskSecrets);
      lines.take(event);
      if (event.type !== "run.finished") return;
      lines.end();
      const about = { ms: performance.now() - began, quiet, changes };
      stderr.write(runSummary(event, about, stderr));
    },
    end: () => lines.end(),
  };
}
