import type { Finished } from "../../agent/agent-run.ts";
import type { AgentEvent } from "../../core/events.ts";
import { maskSecrets } from "../../core/text/secrets.ts";
import { cleaned } from "../../render/event-json.ts";
import { JsonLines, type Renderer } from "../../render/renderers.ts";
import { AttemptLines } from "../../render/lists/attempt-lines.ts";
import { systemClock } from "../../render/tty/paced-writer.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { runSummary } from "../../render/tty/run-summary.ts";
import type { Candidate } from "./attempt-plan.ts";

type WholeEvent = Extract<AgentEvent, { readonly type: "run.finished" }>;

/** How a run of several candidates is shown. */
export interface AttemptsView {
  /** For the events of one candidate. */
  readonly of: (nth: number) => Renderer;
  readonly ended: (candidate: Candidate) => void;
  readonly finish: (whole: WholeEvent) => void;
  readonly end: () => void;
}

interface Wanted {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly count: number;
}

export const attemptsView = (wanted: Wanted): AttemptsView => (wanted.json ? asJson() : asLines(wanted));

const jsonLines = (): Renderer => new JsonLines(stdout, systemClock, maskSecrets);

/** Each candidate's streamed texts are held by themselves: a secret may come in pieces. */
function asJson(): AttemptsView {
  return {
    of: (candidate) => {
      const own = jsonLines();
      return { take: (event) => own.take(asCandidates(event, candidate)), end: () => own.end() };
    },
    ended: () => undefined,
    finish: (whole) => {
      const last = jsonLines();
      last.take(whole);
      last.end();
    },
    end: () => undefined,
  };
}

/** There is one `run.finished`, which is that of the whole run. */
const asCandidates = (event: AgentEvent, candidate: number): AgentEvent =>
  event.type === "run.finished"
    ? { ...event, type: "candidate.finished", candidate }
    : { ...event, candidate };

function asLines({ quiet, count }: Wanted): AttemptsView {
  const began = performance.now();
  const lines = new AttemptLines(stderr, { quiet, count, clock: systemClock });
  return {
    of: (nth) => ({
      take: (event) => lines.take(cleaned({ ...event, candidate: nth }, maskSecrets)),
      end: () => undefined,
    }),
    ended: ({ nth, green, finished }) => lines.ended(nth, green, cleaned<Finished>(finished, maskSecrets)),
    finish: (whole) => {
      lines.end();
      const told = cleaned(whole, maskSecrets);
      const applied = told.attempts?.some((each) => each.applied) === true;
      const about = { ms: performance.now() - began, quiet, changes: applied ? "here" : "kept" } as const;
      stderr.write(runSummary(told, about, stderr));
    },
    end: () => lines.end(),
  };
}
