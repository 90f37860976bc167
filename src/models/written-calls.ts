import type { ToolCall } from "../core/messages.ts";
import type { MalformedCall, ToolOffer } from "../core/provider.ts";

/** A call as it was read: its id is what the server gave, if any. */
export type ReadCall = Omit<ToolCall, "id"> & { readonly id?: string };

export interface ReadCalls {
  readonly calls: readonly ReadCall[];
  readonly malformed: readonly (Omit<MalformedCall, "id"> & { readonly id?: string })[];
}

/** Reads the content of one reply for calls that are written as text. */
export interface WrittenCalls {
  /** The prose that may be shown by now, possibly none. */
  push(chunk: string): string;
  /** `prose` is the whole of it. It begins with what `push` gave, unless that turned out to be a thought. */
  end(): ReadCalls & { readonly prose: string };
}

export type ReadsWritten = (tools: readonly ToolOffer[]) => WrittenCalls;

/** Content that is not read at all: it has to fit a format, so calls in it are data. */
export const plainText: ReadsWritten = () => {
  let prose = "";
  return {
    push: (chunk) => {
      prose += chunk;
      return chunk;
    },
    end: () => ({ calls: [], malformed: [], prose }),
  };
};
