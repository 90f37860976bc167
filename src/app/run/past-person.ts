import { unattended } from "../../agent/approvers.ts";
import { EXIT, Interrupted, type Signal } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Approver } from "../../core/ports.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { settledByMode } from "../prompter.ts";
import type { RecordedCall, RecordedRequest, RecordedAnswer } from "./recorded-conversation.ts";

/** Repeats what a person said and did in a recorded request, at the same places. */

interface RecordedAnswers {
  readonly said: readonly RecordedAnswer[];
  /** The request was of a chat: a person was there, but was not asked what the mode settles. */
  readonly chat: boolean;
}

/** Answers a call as it was answered then; for all other calls nobody is there. */
export function recordedApprover({ said, chat }: RecordedAnswers): Approver {
  const left = [...said];
  const nobody = unattended("contained");
  return {
    ask: (question, signal) => {
      const settled = chat ? settledByMode(question) : undefined;
      if (settled !== undefined) return Promise.resolve(settled);
      const args = JSON.stringify(question.args);
      const at = left.findIndex((each) => each.tool === question.tool && JSON.stringify(each.args) === args);
      const [found] = at === -1 ? [] : left.splice(at, 1);
      if (found === undefined) return nobody.ask(question, signal);
      const { runs, told, edited } = found;
      const word = told === undefined ? {} : { word: told };
      const instead = edited === undefined ? {} : { edited };
      return Promise.resolve({ runs, by: "person", reason: "", ...word, ...instead });
    },
  };
}

/** Answers a question as it was answered then; all other questions get no answer. */
export function recordedPerson(calls: readonly RecordedCall[]): AskPerson {
  const left = calls.filter(({ tool }) => tool === "ask_user");
  return ({ question }) => {
    const at = left.findIndex(({ args }) => args["question"] === question);
    const [found] = at === -1 ? [] : left.splice(at, 1);
    return Promise.resolve(found?.end?.kind === "ok" ? found.end.text : undefined);
  };
}

/** The place where a person, or a kill, ended a request. */
type Stop =
  | {
      readonly at: "call";
      readonly tool: string;
      readonly args: string;
      readonly nth: number;
      readonly ms: number;
    }
  | { readonly at: "reply"; readonly replies: number };

/**
 * A call that was cancelled then, or never ended; otherwise the reply that never came. Undefined: the request ended by
 * itself.
 */
function stopOf({ calls, replies, end }: RecordedRequest): Stop | undefined {
  if (end !== null && end.status !== "interrupted") return undefined;
  const open = calls.findIndex(
    ({ verdict, end: own }) => verdict?.runs === true && (own === null || own.kind === "cancelled"),
  );
  const found = calls[open];
  if (found === undefined)
    return { at: "reply", replies: replies.filter(({ agent }) => agent === null).length };
  const nth = calls
    .slice(0, open)
    .filter((each) => each.tool === found.tool && keyOf(each) === keyOf(found)).length;
  // The time that a person thought about an answer without giving one need not be waited for.
  const ms = found.tool === "ask_user" ? 0 : (found.end?.ms ?? 0);
  return { at: "call", tool: found.tool, args: keyOf(found), nth, ms };
}

const keyOf = ({ args }: Pick<RecordedCall, "args">): string => JSON.stringify(args);

const SIGNALS: ReadonlyMap<number | undefined, Signal> = new Map([
  [EXIT.hangup, "SIGHUP"],
  [EXIT.terminated, "SIGTERM"],
]);

/** A longer timer would fire after a millisecond. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Ends a request where it was ended then: at the same call after the same time, or at the model request that had no
 * reply.
 */
export class PastInterrupt implements Disposable {
  readonly #stop: Stop | undefined;
  readonly #ending = new AbortController();
  readonly #signal: Signal;
  #seen = 0;
  #call: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(request: RecordedRequest) {
    this.#stop = stopOf(request);
    this.#signal = SIGNALS.get(request.end?.exit_code) ?? "SIGINT";
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  take(event: AgentEvent): void {
    const stop = this.#stop;
    if (stop === undefined) return;
    if (stop.at === "reply") {
      if (event.type === "turn.started" && event.agent === undefined && event.turn > stop.replies)
        this.#end();
      return;
    }
    if (event.type === "call.proposed" && event.tool === stop.tool && keyOf(event) === stop.args) {
      if (this.#seen === stop.nth) this.#call = event.call;
      this.#seen += 1;
    }
    if (event.type === "call.decided" && event.call === this.#call && event.runs)
      this.#timer ??= setTimeout(() => this.#end(), Math.min(stop.ms, LONGEST_MS));
  }

  #end(): void {
    this.#ending.abort(new Interrupted(this.#signal));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
