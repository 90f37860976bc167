import type { CreditWindow } from "./credit.ts";

const PIECE = 64 * 1024;

/** Sends input piece by piece. Stops quietly when the call ends before its input does; input that fails is over. */
export async function feed(
  input: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  credit: CreditWindow,
  { send, end }: { readonly send: (piece: Buffer) => void; readonly end: () => void },
): Promise<void> {
  try {
    for await (const chunk of input)
      for (let at = 0; at < chunk.length; at += PIECE) {
        const piece = Buffer.from(chunk.subarray(at, at + PIECE));
        if (!(await credit.take(piece.length))) return;
        send(piece);
      }
  } catch {
    // Whoever gave the input knows.
  }
  end();
}
