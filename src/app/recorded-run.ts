import type { Mode, Verdict } from "../core/decision.ts";
import type { ResultKind } from "../core/events.ts";
import type { Session } from "../core/session.ts";
import { reportOf } from "../render/report/build-report.ts";
import { callsOf } from "../render/report/report-form.ts";

/** A command of a session, with what became of it then. */
export interface PastCommand {
  readonly call: string;
  readonly agent: string | null;
  readonly at: number;
  readonly args: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly mode: Mode;
  readonly decision: Verdict;
  readonly ran: boolean;
  /** As it was judged, with what earlier calls exported; and where it started, undefined for the workspace. */
  readonly judged: string;
  readonly folder: string | undefined;
  /** Null when it came to no end. */
  readonly then: {
    readonly kind: ResultKind;
    readonly exit_code: number | null;
    readonly text: string;
  } | null;
}

/** In the order of their calls. */
export function pastCommands(session: Session): readonly PastCommand[] {
  const parts = { session: session.info(), timeline: session.timeline(), audit: null, diff: null };
  return reportOf(parts).runs.flatMap((run) =>
    callsOf(run).flatMap(({ call, agent, at, args, verdict, end }) => {
      const { command } = args;
      if (typeof command !== "string" || verdict === null) return [];
      const { decision, runs: ran, judged } = verdict;
      return {
        call,
        agent,
        at,
        args,
        command,
        decision,
        ran,
        mode: run.mode,
        judged: judged?.commands[0] ?? command,
        folder: judged?.folder,
        then: end === null ? null : { ...end, text: wholeText(session, end) },
      };
    }),
  );
}

function wholeText(
  { outputs }: Session,
  { text, full }: { readonly text: string; readonly full: string | null },
): string {
  if (full === null) return text;
  return outputs.page(full, 0, Number.MAX_SAFE_INTEGER)?.text ?? text;
}
