import { wholeText } from "../http/body.ts";
import { Concessions } from "../http/concessions.ts";
import { type Fields, asFields, asList, parsedJson } from "../http/fields.ts";
import { notA, stranger } from "../http/garbled.ts";
import { opened } from "../http/opened.ts";
import { type Asked, failureOf, refusalIn } from "../http/refusals.ts";
import { WireFailure } from "../wire.ts";

export interface Question {
  readonly asked: Asked;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Fields;
  readonly signal: AbortSignal;
}

const CONNECT_MS = 10_000;

/** The list under `name` of one JSON answer; throws a `WireFailure` for everything else. */
export async function askForList(
  name: string,
  { asked, headers, body, signal }: Question,
): Promise<readonly unknown[]> {
  const concessions = new Concessions([]);
  const { response } = await opened({ asked, headers, body, concessions, signal, connectMs: CONNECT_MS });
  const text = await wholeText(response);
  if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
  const value = parsedJson(text);
  if (value === undefined)
    throw /^\s*</.test(text) ? stranger(asked, "it answers with a web page") : notA("JSON", text);
  const refusal = refusalIn(value, 200);
  if (refusal !== undefined) throw failureOf(refusal, asked);
  const list = asFields(value)?.[name];
  if (!Array.isArray(list)) throw notA("list of vectors", text);
  return asList(list);
}
