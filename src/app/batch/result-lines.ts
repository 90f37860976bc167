import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import type * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { parsedJson } from "../../core/raw-data.ts";

/** Results as they arrive, one JSON value per line: `harness eval` and `harness batch` resume from them. */
export interface ResultFile<T> {
  readonly file: string;
  readonly form: z.ZodType<T>;
  /** The command that writes the file. */
  readonly writer: string;
}

/** A missing file has no results. A last line that was cut by a kill does not count. */
export async function* resultLines<T>({ file, form, writer }: ResultFile<T>): AsyncGenerator<T> {
  let at = 0;
  try {
    for await (const line of wholeLines(file)) {
      at += 1;
      const read = form.safeParse(parsedJson(line));
      if (!read.success)
        throw new HarnessError(
          EXIT.usage,
          `${file}, line ${at} is not a result of harness ${writer}`,
          `name a results.jsonl that harness ${writer} has written`,
        );
      yield read.data;
    }
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    if (errorCode(thrown) === "ENOENT") return;
    throw new HarnessError(
      EXIT.usage,
      `${file} cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

async function* wholeLines(file: string): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of createReadStream(file, "utf8")) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Appends results. A line that was cut by a kill is removed first, so that no other line is lost. */
export async function openResults(
  file: string,
): Promise<AsyncDisposable & { readonly add: (result: object) => Promise<void> }> {
  const handle = await open(file, "a+");
  const { size } = await handle.stat();
  const last = Buffer.alloc(1);
  if (size > 0) {
    await handle.read(last, 0, 1, size - 1);
    if (last[0] !== 0x0a) await handle.truncate(await lastLineEnd(handle, size));
  }
  return {
    add: async (result) => {
      await handle.appendFile(`${JSON.stringify(result)}\n`);
      await handle.datasync();
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function lastLineEnd(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<number> {
  const bytes = Buffer.alloc(size);
  await handle.read(bytes, 0, size, 0);
  return bytes.lastIndexOf(0x0a) + 1;
}
