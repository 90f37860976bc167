import type { Message, Stop } from "../../src/core/model-provider.ts";
import type { ModelWire } from "../../src/models/model-api.ts";

/**
 * Instructions for a server, independent of any API; the tests of each adapter translate them into its API's format.
 */
export interface Scenario {
  /** One per request, in order; the last one is repeated for further requests. */
  readonly replies: readonly [Answered, ...Answered[]];
}

export type Answered = Reply | Refused;

export interface Reply {
  readonly parts: readonly Part[];
  /**
   * `done` (default): the API's normal end. `cut`: the connection is closed instead. `silent`: nothing more comes, but
   * the connection stays open. `endless`: the last part repeats until the client leaves.
   */
  readonly ends?: "done" | "cut" | "silent" | "endless";
  /** Default: `calls` if there is a call, else `end`. */
  readonly stop?: Stop;
  /** If absent, the server reports no usage. */
  readonly usage?: { readonly prompt: number; readonly completion: number };
  /**
   * The body is written in pieces of this many bytes, wherever they split; arguments of calls come in pieces of this
   * many characters if the API splits calls.
   */
  readonly slice?: number;
}

export type Part =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** `args` is JSON text, or whatever is sent in its place. */
  | { readonly type: "call"; readonly name: string; readonly args: string; readonly id?: string }
  | { readonly type: "pause"; readonly ms: number }
  /** An error inside a stream with status 200, in the API's format. */
  | { readonly type: "error"; readonly message: string }
  /** These bytes are sent in place of an event. */
  | { readonly type: "garbage"; readonly text: string };

export interface Refused {
  /**
   * Status and body as the real server writes them. `error_in_200`: status 200, and a body that is only an error.
   * `unreachable`: nothing listens. `no_tools`: the server accepts no `tools` for this model. `no_schema`: it cannot
   * constrain a reply to a schema.
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
  /** Seconds in the Retry-After header. */
  readonly retryAfter?: number;
  /** Words that the error text contains. */
  readonly says?: string;
}

/** Placeholder in a `text` for the byte 0xFF, which is invalid UTF-8. `bytesOf` inserts the byte. */
export const NO_UTF8 = "\u{E0FF}";

/** The bytes of a body that may contain `NO_UTF8`. */
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
  /** The adapter, connected to the server; with `KEY` as its key if its API has keys. */
  readonly wire: ModelWire;
  readonly asked: () => readonly Asked[];
  /** Resolves as soon as a client leaves before the end of its reply. */
  readonly left: Promise<void>;
}

/** Abilities that not every API has; the skipped test states the reason. */
export type Ability =
  | "thinking"
  /** Calls carry ids. */
  | "ids"
  /** Replies can be constrained by a schema. */
  | "hold"
  /** Arguments are text, so they can be cut off or contain a key twice. */
  | "argument text";

export interface ServerFixture {
  open(scenario: Scenario): Promise<Opened>;
  readonly lacks?: Partial<Readonly<Record<Ability, string>>>;
}

export const KEY = "sk-contract-0123456789abcdef";

export const isRefused = (answered: Answered): answered is Refused => "refuses" in answered;

/** The reply to the request with this index. */
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
