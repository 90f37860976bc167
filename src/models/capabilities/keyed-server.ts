import { type Answer, askJson } from "../ollama/http.ts";
import { NO_WORD, type Word } from "./believe.ts";
import { entryIn, idsIn, propsContext, wordOf } from "./reported.ts";

export interface ServerQuestion {
  /** Ends in /v1 on most servers. */
  readonly base: string;
  /** Where its list of models is. */
  readonly list: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface ServerAnswer {
  /** null when the server gave no list. */
  readonly models: readonly string[] | null;
  /** Why, in words that repeat nothing of the server's own. */
  readonly reason: string;
  readonly wordOn: (model: string) => Word;
}

/**
 * What an OpenAI-compatible server tells of its models. Its list first; LM Studio's own list and llama-server's /props
 * are asked for only where the list says nothing of a window. Never throws; all within `timeoutMs`.
 */
export async function askServer(question: ServerQuestion): Promise<ServerAnswer> {
  const signal = AbortSignal.any([question.signal, AbortSignal.timeout(question.timeoutMs)]);
  const get = async (url: string): Promise<unknown> => {
    const answer = await askJson(url, { signal, headers: question.headers });
    return answer.kind === "json" ? answer.value : undefined;
  };
  const answer = await askJson(question.list, { signal, headers: question.headers });
  if (answer.kind !== "json") return noList(whyNot(answer));
  const models = idsIn(answer.value);
  if (models === null) return noList("it answers with JSON of another kind");
  const told = models.map((model) => wordOf(entryIn(answer.value, model)));
  const root = question.base.replace(/\/v1$/, "");
  const silent = root !== question.base && told.every(({ context }) => context === null);
  const [studio, props] = silent
    ? await Promise.all([get(`${root}/api/v0/models`), get(`${root}/props`)])
    : [undefined, undefined];
  const slot = propsContext(props);
  return {
    models,
    reason: "",
    wordOn: (model) => {
      const own = wordOf(entryIn(studio, model) ?? entryIn(answer.value, model));
      return { ...own, context: own.context ?? slot };
    },
  };
}

const noList = (reason: string): ServerAnswer => ({ models: null, reason, wordOn: () => NO_WORD });

function whyNot(answer: Exclude<Answer, { readonly kind: "json" }>): string {
  return answer.kind === "refused" ? `HTTP ${answer.status}` : answer.reason;
}
