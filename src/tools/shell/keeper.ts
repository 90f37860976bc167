import type { Box } from "../../core/ports.ts";
import type { Desk } from "../desk.ts";
import { decoded, envOver, type Exported, exportedIn, leftIn, MOST } from "./state.ts";

/** One call of a shell whose folder and exported variables persist. */
interface KeptCall {
  /** What the wrapper reads. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Takes over what the shell left, and gives what is to be said of it. Not for one that was killed. */
  readonly take: () => Promise<readonly string[]>;
}

/** What is held of a box. */
interface Place {
  /**
   * Written by every call and never removed, as that would cost as much as a call. What goes on in the box beside a
   * call and finds it can write there before it is read: it says then where later commands start and what is exported
   * to them. That is no breach, since those commands are judged for just that, and any command can say the same by `cd`
   * and `export`.
   */
  readonly file: string;
  /** What a shell begins with here when nothing was exported. */
  own: Exported | undefined;
}

export type Keeper = (box: Box) => KeptCall;

export function keeperOf(desk: Pick<Desk, "shell" | "keeps">): Keeper {
  const places = new WeakMap<Box, Place>();
  const told = new Set<string>();
  return (box) => {
    const place = places.get(box) ?? { file: `/run/.harness-${crypto.randomUUID()}`, own: undefined };
    places.set(box, place);
    const token = crypto.randomUUID();
    return {
      input: lineOf(`${place.file} ${token}\n`),
      take: async () => {
        const refused = await take(desk, { box, place, token });
        if (typeof refused === "string")
          return [`[folder and exported variables stay as before the call: ${refused}]`];
        const fresh = refused.filter((name) => !told.has(name));
        for (const name of fresh) told.add(name);
        return fresh.map(
          (name) => `[${name} is not kept for later calls: set it in the command that needs it]`,
        );
      },
    };
  };
}

async function* lineOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

interface Taken {
  readonly box: Box;
  readonly place: Place;
  readonly token: string;
}

/** The names that were not kept, or why nothing was. */
async function take(
  desk: Pick<Desk, "shell" | "keeps">,
  { box, place, token }: Taken,
): Promise<readonly string[] | string> {
  const read = await box.read(place.file, { offset: 0, limit: MOST + 1 });
  if (read.kind !== "ok") return read.code === "ENOENT" ? [] : read.reason;
  if (read.value.size > MOST) return "they are more than 64 KiB";
  const left = leftIn(read.value.content, token);
  if (left === undefined) return [];
  if (typeof left === "string") return left;
  place.own ??= await ownOf(box);
  if (place.own === undefined) return "the box does not say what its own are";
  const { env, refused } = await envOver(place.own, left.exported, desk);
  desk.shell.move(left.folder, env);
  return refused;
}

async function ownOf(box: Box): Promise<Exported | undefined> {
  const request = { words: ["env", "-0"], folder: "/", timeoutMs: 10_000, keep: { head: MOST, tail: 0 } };
  const { exit_code, stdout } = await box.exec(request, new AbortController().signal);
  const text = exit_code === 0 && stdout.lost === 0 ? decoded(stdout.head) : undefined;
  return text === undefined ? undefined : exportedIn(text.split("\0"));
}
