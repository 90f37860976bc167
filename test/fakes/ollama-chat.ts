/** Lines of /api/chat as Ollama writes them. */

interface ChatMessage {
  readonly content?: string;
  readonly thinking?: string;
  readonly calls?: readonly ChatCall[];
}

export interface ChatCall {
  readonly name: string;
  readonly args: unknown;
  readonly id?: string;
}

const HEAD = { model: "qwen3:8b", created_at: "2026-10-17T23:14:07.414671Z" };

export const chatLine = ({ content = "", thinking, calls }: ChatMessage): string =>
  line({
    ...HEAD,
    message: {
      role: "assistant",
      content,
      ...(thinking === undefined ? {} : { thinking }),
      ...(calls === undefined ? {} : { tool_calls: calls.map(asCall) }),
    },
    done: false,
  });

/** Every call has index 0, as Ollama's built-in parsers leave it. */
const asCall = ({ name, args, id = "call_k3j9x0ab" }: ChatCall): object => ({
  id,
  function: { index: 0, name, arguments: args },
});

export const doneLine = (more: Readonly<Record<string, unknown>> = {}): string =>
  line({
    ...HEAD,
    message: { role: "assistant", content: "" },
    done: true,
    done_reason: "stop",
    total_duration: 174_560_334,
    load_duration: 101_397_084,
    prompt_eval_count: 11,
    prompt_eval_duration: 13_074_791,
    eval_count: 18,
    eval_duration: 52_479_709,
    ...more,
  });

export const errorLine = (error: string): string => line({ error });

const line = (value: object): string => `${JSON.stringify(value)}\n`;
