import { constants } from "node:os";
import { encodeFields } from "./fields.ts";
import { EXEC_STDIN, EXEC_TTY, MAX_PAYLOAD } from "./frames.ts";

export interface Command {
  readonly words: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** Bytes of each stream that are handed on as they come; of what follows, only the last `tail` are. */
  readonly head: number;
  readonly tail: number;
  readonly terminal: boolean;
  /** undefined for none at all. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
}

/** The payload of the request that starts it. */
export function execPayload(command: Command): Buffer {
  const flags = (command.input === undefined ? 0 : EXEC_STDIN) + (command.terminal ? EXEC_TTY : 0);
  return encodeFields([
    ...command.words.map((word) => ["a", word] as const),
    ...Object.entries(command.env).map(([name, value]) => ["e", `${name}=${value}`] as const),
    ["d", command.folder],
    ["t", command.timeoutMs],
    ["h", command.head],
    ["l", command.tail],
    ["f", flags],
  ]);
}

/** The system's number for why no runner can be asked this, or undefined: to it, words end at a NUL. */
export function unsendable({ words, folder, env }: Command, payload: Buffer): number | undefined {
  if (payload.length > MAX_PAYLOAD) return constants.errno.E2BIG;
  const texts = [...words, folder, ...Object.entries(env).flat()];
  return texts.some((text) => text.includes("\0")) ? constants.errno.EINVAL : undefined;
}
