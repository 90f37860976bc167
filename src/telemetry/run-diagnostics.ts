import { CanaryTouched, HarnessError, reasonOf } from "../core/errors.ts";
import type { AgentEvent } from "../core/events.ts";
import { truncate } from "../core/wording.ts";
import type { LogFields, Level } from "./diagnostics-log.ts";

/** What diagnostics record of a run: what happened, when and how it ended; no text of user, model or program. */

export interface Diagnosed {
  readonly level: Level;
  readonly what: string;
  readonly fields: LogFields;
}

/** Most characters of our own texts, which may quote a server or a program. */
const MAX_WORDS = 300;
/** Shorter lines of a task may occur in other texts, too. */
const MIN_LINE = 12;

export class RunDiagnostics {
  /** Lines of the request. A server that refuses a request may quote them. */
  readonly #requestLines = new Set<string>();
  readonly #tools = new Map<string, string>();

  /** Undefined for events that are not recorded. */
  take(event: AgentEvent): Diagnosed | undefined {
    const found = this.#diagnosed(event);
    const { agent, candidate } = event;
    if (found === undefined) return undefined;
    const by = {
      ...(agent === undefined ? {} : { agent }),
      ...(candidate === undefined ? {} : { candidate }),
    };
    return { ...found, fields: { ...found.fields, ...by } };
  }

  #diagnosed(event: AgentEvent): Diagnosed | undefined {
    switch (event.type) {
      case "run.started":
        this.#addRequest(event.task);
        return info("run started", {
          run: event.run,
          mode: event.mode,
          provider: event.provider,
          model: event.model,
          resumed: event.resumed,
          granted: event.granted?.length ?? 0,
        });
      case "intent":
        return debug("intent", { intent: event.intent, by: event.by });
      case "box.ready":
        return info("box ready", { ms: Math.round(event.ms), image: event.image });
      case "compaction": {
        const { status, trigger, before, after, reason } = event;
        const level = status === "failed" ? warn : info;
        return level("compaction", { status, trigger, before, after, reason: this.#withoutRequest(reason) });
      }
      case "plan":
        return debug("plan", { steps: event.steps.length });
      case "task":
        return info("subagent", { task: event.task, status: event.status });
      case "notice":
        return warn("notice", { text: this.#withoutRequest(event.text) });
      case "canary":
        return error("canary touched", { canary: event.canary });
      case "rolled_back":
        return debug("taken back", { records: event.record_count });
      case "connection":
        return event.verdict === "denied"
          ? info("connection refused", { host: event.host, port: event.port, rule: event.rule })
          : undefined;
      case "run.finished":
      case "candidate.finished":
        return this.#finished(event);
      default:
        return this.#ofModel(event) ?? this.#ofCall(event);
    }
  }

  #ofModel(event: AgentEvent): Diagnosed | undefined {
    switch (event.type) {
      case "turn.started":
        return debug("turn", { turn: event.turn, tokens: event.tokens });
      case "model.finished":
      case "model.aside": {
        const { usage, ms, first_token_ms } = event;
        return info(event.type === "model.aside" ? `reply for ${event.purpose}` : "reply", {
          ms: Math.round(ms),
          first_token_ms: first_token_ms === undefined ? null : Math.round(first_token_ms),
          in: usage.prompt_tokens,
          out: usage.completion_tokens,
        });
      }
      case "model.waiting":
        return warn("model asked again", {
          attempt: event.attempt,
          ms: event.ms,
          reason: this.#withoutRequest(event.reason),
        });
      case "model.failed":
        return error("model failed", {
          kind: event.kind,
          reason: this.#withoutRequest(event.reason),
          remedy: this.#withoutRequest(event.remedy),
        });
      default:
        return undefined;
    }
  }

  #ofCall(event: AgentEvent): Diagnosed | undefined {
    switch (event.type) {
      case "call.proposed":
        this.#tools.set(event.call, event.tool);
        return undefined;
      case "call.decided": {
        const rules = event.rules.map(({ id }) => id);
        const { decision, by, runs } = event;
        return debug("decided", { tool: this.#tools.get(event.call), decision, by, runs, rules });
      }
      case "call.ended": {
        const { kind, cause, exit_code, ms } = event;
        return info("call", {
          tool: this.#tools.get(event.call),
          kind,
          cause,
          exit_code,
          ms: Math.round(ms),
        });
      }
      case "call.missed":
        return warn("call missed", { kind: event.kind });
      case "call.parked":
        return info("parked", { tool: event.tool });
      case "approval":
        return info("answered", { tool: event.tool, said: event.said, from: event.from });
      case "check.ended":
        return info("check", {
          when: event.when,
          round: event.round,
          exit_code: event.exit_code,
          ms: Math.round(event.ms),
        });
      default:
        return undefined;
    }
  }

  #finished(event: Extract<AgentEvent, { readonly type: "run.finished" | "candidate.finished" }>): Diagnosed {
    const { status, exit_code, reason, turns, tool_calls, usage, denials } = event;
    return (exit_code === 0 ? info : error)("run finished", {
      status,
      exit_code,
      reason: this.#withoutRequest(reason),
      turns,
      tool_calls,
      denials: denials.length,
      in: usage.prompt_tokens,
      out: usage.completion_tokens,
    });
  }

  #addRequest(task: string): void {
    for (const line of [task, ...task.split("\n")].map((each) => each.trim()))
      if (line.length >= MIN_LINE) this.#requestLines.add(line);
  }

  #withoutRequest(text: string): string {
    let words = text;
    for (const line of this.#requestLines) words = words.replaceAll(line, "[what was asked]");
    return truncate(words, MAX_WORDS);
  }
}

const atLevel =
  (level: Level) =>
  (what: string, fields: LogFields): Diagnosed => ({ level, what, fields });
const debug = atLevel("debug");
const info = atLevel("info");
const warn = atLevel("warn");
const error = atLevel("error");

const MAX_CAUSES = 5;
const MAX_STACK = 3000;

/** What was thrown and its causes, with the place. */
export function failureOf(thrown: unknown): Diagnosed {
  const causes: string[] = [];
  let cause = causeOf(thrown);
  for (let depth = 0; depth < MAX_CAUSES && cause !== undefined; depth += 1) {
    causes.push(`${nameOf(cause)}: ${reasonOf(cause).slice(0, MAX_WORDS)}`);
    cause = causeOf(cause);
  }
  return error("failed", {
    name: nameOf(thrown),
    message: reasonOf(thrown).slice(0, MAX_WORDS),
    ...(thrown instanceof HarnessError
      ? { exit: thrown.exit, remedy: thrown.remedy.slice(0, MAX_WORDS) }
      : {}),
    ...(causes.length === 0 ? {} : { causes }),
    stack: thrown instanceof Error ? framesOf(thrown).slice(0, MAX_STACK) : "",
  });
}

const causeOf = (thrown: unknown): unknown => {
  if (thrown instanceof SuppressedError) return thrown.suppressed;
  return thrown instanceof Error ? thrown.cause : undefined;
};

const nameOf = (thrown: unknown): string => {
  if (thrown instanceof CanaryTouched) return "CanaryTouched";
  if (thrown instanceof HarnessError) return "HarnessError";
  return thrown instanceof Error ? thrown.name : typeof thrown;
};

/** The stack frames, without the error's message. */
const framesOf = ({ stack = "" }: Error): string =>
  stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
