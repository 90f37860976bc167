import type { Message } from "../../src/core/messages.ts";
import type { Stop } from "../../src/core/model-provider.ts";
import type { Wire } from "../../src/models/model-api.ts";

/** What a server is told to do, in no API's words; each adapter's tests say it in the format of their own API. */
export interface Scenario {
  /** One for each request, in order; the last one is given again to every further request. */
  readonly replies: readonly [Answered, ...Answered[]];
}

export type Answered = Reply | Refused;

export interface Reply {
  readonly parts: readonly Part[];
  /**
   * `done` (when left out): as the API ends a reply. `cut`: the connection is closed instead. `silent`: nothing more
   * comes, and the connection stays open. `endless`: the last part comes again and again, until the client goes.
   */
  readonly ends?: "done" | "cut" | "silent" | "endless";
  /** `calls` when there is a call, else `end`, unless it stands here. */
  readonly stop?: Stop;
  /** Left out, the server counts nothing. */
  readonly usage?: { readonly prompt: number; readonly completion: number };
  /**
   * The body is written in pieces of so many bytes, wherever they cut; arguments of calls come in pieces of so many
   * characters where the API has parts of calls.
   */
  readonly slice?: number;
}

export type Part =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** `args` is JSON text, or what stands in its place. */
  | { readonly type: "call"; readonly name: string; readonly args: string; readonly id?: string }
  | { readonly type: "pause"; readonly ms: number }
  /** An error inside of a stream whose status was 200, as the API says it. */
  | { readonly type: "error"; readonly message: string }
  /** These bytes stand where an event should. */
  | { readonly type: "garbage"; readonly text: string };

export interface Refused {
  /**
   * Status and body as the real server writes them. `error_in_200`: status 200, and a body that is only an error.
   * `unreachable`: nobody listens. `no_tools`: it takes no `tools` for this model. `no_schema`: it holds no reply to a schema.
   */
  readonly refuses:
    | "unauthorised"
    | "no_model"
    | "too_long"
    | "rate_limited"
    | "server"
    | "error_in_200"
    | "no_tools"
    | "no_schema"
    | "unreachable";
  /** Seconds, in the header. */
  readonly retryAfter?: number;
  /** Words that the error's text holds. */
  readonly says?: string;
}

/** In a `text` it stands for the byte 0xFF, which is no UTF-8. `bytesOf` puts it there. */
export const NO_UTF8 = "\u{E0FF}";

/** The bytes of a body that may hold `NO_UTF8`. */
export function bytesOf(body: string): Buffer {
  const pieces = body.split(NO_UTF8).flatMap((text, index) => {
    const bytes = Buffer.from(text, "utf8");
    return index === 0 ? [bytes] : [Buffer.of(0xff), bytes];
  });
  return Buffer.concat(pieces);
}

/** What the server saw of one request. */
export interface Asked {
  /** Names of the tools that were sent natively. */
  readonly tools: readonly string[];
  /** The whole body. */
  readonly body: string;
}

export interface Opened extends AsyncDisposable {
  /** The adapter, talking to the server; with `KEY` as its key where its API has keys. */
  readonly wire: Wire;
  readonly asked: () => readonly Asked[];
  /** Resolves as soon as a client has left before the end of its reply. */
  readonly left: Promise<void>;
}

/** What not every API can say; the reason stands in the skipped test. */
export type Ability =
  | "thinking"
  /** Calls carry ids. */
  | "ids"
  /** Replies are held to a schema. */
  | "hold"
  /** Arguments are a text, so they can be cut or hold a key twice. */
  | "argument text";

export interface ServerFixture {
  open(scenario: Scenario): Promise<Opened>;
  readonly lacks?: Partial<Readonly<Record<Ability, string>>>;
}

export const KEY = "sk-contract-0123456789abcdef";

export const isRefused = (answered: Answered): answered is Refused => "refuses" in answered;

/** The reply to the request that came after so many others. */
export const replyAt = ({ replies }: Scenario, index: number): Answered =>
  replies[Math.min(index, replies.length - 1)] ?? replies[0];

export const HISTORY: readonly Message[] = [
  { role: "system", text: "You are the system prompt." },
  { role: "user", text: "First question: what is in src?" },
  {
    role: "assistant",
    text: "I look there.",
    calls: [{ id: "Abc123xyz", name: "list_dir", args: { path: "src" } }],
  },
  { role: "tool", call: "Abc123xyz", text: "main.ts\nöther.ts" },
  { role: "user", text: "Last question: and now?" },
];
