import { fakeBox } from "../fakes/box.ts";
import { boxContract } from "./box.ts";
import { FILES } from "./box-words.ts";

const words = {
  exit: (code: number) => ["exit", String(code)],
  die: (signal: number) => ["die", String(signal)],
  leave: (processes: number) => ["leave", String(processes)],
  says: (out: string, err: string) => ["says", out, err],
  flood: (bytes: number) => ["flood", String(bytes)],
};

boxContract("fake box", () => {
  const box = fakeBox({ files: FILES });
  const lose = (): void => box.lose("the container was killed");
  return Promise.resolve({ box, words, lose, [Symbol.asyncDispose]: () => box[Symbol.asyncDispose]() });
});
