import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";
import { boxContract } from "./box.ts";
import { FILES } from "./box-words.ts";

const sh = (line: string, ...words: readonly string[]): readonly string[] => [
  "sh",
  "-c",
  line,
  "sh",
  ...words,
];

const words = {
  exit: (code: number) => sh('exit "$1"', String(code)),
  die: (signal: number) => sh('kill -"$1" $$', String(signal)),
  leave: (processes: number) => sh('for _ in $(seq "$1"); do sleep 60 & done; exit 0', String(processes)),
  says: (out: string, err: string) => sh('printf %s "$1"; printf %s "$2" >&2', out, err),
  flood: (bytes: number) => ["head", "-c", String(bytes), "/dev/zero"],
};

boxContract(
  "docker box",
  async () => {
    const real = await realBox(FILES);
    const lose = async (): Promise<void> => {
      await engine.api.getContainer(await real.container()).kill();
    };
    return { box: real.box, words, lose, [Symbol.asyncDispose]: () => real[Symbol.asyncDispose]() };
  },
  { skip },
);
