import { type Mode, type OnAsk, runsUnattended } from "../core/decision.ts";
import { isSameQuestion } from "../core/session.ts";
import type { AnswerGrant } from "../core/network.ts";
import type { Answer, Approver, Question } from "../core/ports.ts";
import { NO_FACTS } from "../core/tool.ts";
import { judgedText } from "../tools/shell-command.ts";
import type { ToolContext } from "../tools/tool-context.ts";
import type { Judge } from "./action-judge.ts";

/** Approvers that answer when no person is there. */

/** Answers by the table of modes: in workspace-write, contained actions run. */
export function unattended(onAsk: OnAsk): Approver {
  return { ask: (question) => Promise.resolve(answerTo(question, onAsk)) };
}

function answerTo({ mode, writes, decision }: Question, onAsk: OnAsk): Answer | "waits" {
  // In full access, only a rule of the user can still ask.
  if (runsUnattended({ ...decision, decision: "ask" }, mode, onAsk))
    return { runs: true, by: mode === "danger-full-access" ? "mode" : "contained", reason: "" };
  const readOnly = mode === "read-only";
  if (onAsk === "park" && !decision.contained && !(readOnly && writes)) return "waits";
  if (readOnly) return refused("the mode is read-only, and nobody is there to be asked");
  if (onAsk === "refuse") return refused("nobody is there to be asked");
  return refused("nobody is there to be asked, and it is not contained");
}

const refused = (reason: string): Answer => ({ runs: false, by: "nobody", reason });

/** Answers that a person gave earlier. */
export interface EarlierAnswers {
  /** Questions that were answered with a lasting yes. */
  readonly always: readonly Question[];
  /** The answer to the question that was waiting; it applies to that call alone. */
  readonly once?:
    | undefined
    | {
        readonly question: Question;
        readonly runs: boolean;
        /** For the model, sent with a no. */
        readonly told?: string;
        /** The command to run instead. */
        readonly edited?: string;
        readonly grant?: AnswerGrant;
      };
}

/** A person's no, with their words for the model. */
const personsNo = (word?: string): Answer => ({
  runs: false,
  by: "person",
  reason: "",
  ...(word === undefined ? {} : { word }),
});

export function remembering({ always, once }: EarlierAnswers, approver: Approver): Approver {
  const open = { once, instead: once && replacedCommand(once) };
  return {
    refuses: (question) => {
      const { instead } = open;
      if (instead !== undefined && instead.isOf(question)) {
        open.instead = undefined;
        // Only the question about the edited command has an answer.
        if (once?.edited !== undefined) open.once = undefined;
        return { ...personsNo(), edited: instead.command };
      }
      return once?.runs === false &&
        isSameCall(once.question, question) &&
        once.question.text === question.text
        ? personsNo(once.told)
        : undefined;
    },
    ask: (question, signal) => {
      const waited = open.once;
      if (waited !== undefined && isThatCall(waited.question, question)) {
        open.once = undefined;
        const { runs, grant, told } = waited;
        if (!runs) return Promise.resolve(personsNo(told));
        return Promise.resolve({ runs, by: "person", reason: "", ...(grant === undefined ? {} : { grant }) });
      }
      return always.some((each) => isSameQuestion(each, question))
        ? Promise.resolve({ runs: true, by: "person", reason: "" })
        : approver.ask(question, signal);
    },
  };
}

/**
 * A resumed turn starts from the model's own call. If a person replaced its command, with this answer or before the
 * parked question was asked, the replacement is applied again.
 */
function replacedCommand({ question, edited }: NonNullable<EarlierAnswers["once"]>) {
  const command = edited ?? (question.replaces === undefined ? undefined : question.args["command"]);
  const before = question.replaces ?? question.args["command"];
  if (typeof command !== "string") return undefined;
  const isOf = (other: Question): boolean =>
    isSameCall(question, other) && other.replaces === undefined && other.args["command"] === before;
  return { command, isOf };
}

const isSameCall = (one: Question, other: Question): boolean =>
  one.call === other.call && one.tool === other.tool;

/** Also compares the arguments: the text of a question does not show all of them. */
const isThatCall = (waited: Question, question: Question): boolean =>
  waited.call === question.call &&
  isSameQuestion(waited, question) &&
  JSON.stringify(waited.args) === JSON.stringify(question.args);

/**
 * Finds exported variables that would have even `true` refused, and so every later command. New variables are judged
 * together first, which is never milder than judging each alone; they are judged one by one only if that is refused. A
 * verdict is kept while its variable keeps its value.
 */
export function refusedBy(judge: () => Promise<Judge>, mode: Mode): NonNullable<ToolContext["refused"]> {
  let known: ReadonlyMap<string, { readonly value: string; readonly runs: boolean }> = new Map();
  return async (variables) => {
    const judged = await judge();
    const runs = (env: Readonly<Record<string, string>>): boolean =>
      runsUnattended(judged.judge({ ...NO_FACTS, commands: [judgedText("true", env)] }), mode);
    const fresh = [...variables].filter(([name, value]) => known.get(name)?.value !== value);
    const together = fresh.length > 1 && runs(Object.fromEntries(fresh));
    const verdicts = fresh.map(
      ([name, value]) => [name, { value, runs: together || runs({ [name]: value }) }] as const,
    );
    const all = new Map([...known, ...verdicts]);
    known = new Map([...all].filter(([name]) => variables.has(name)));
    return new Set([...variables.keys()].filter((name) => known.get(name)?.runs !== true));
  };
}
