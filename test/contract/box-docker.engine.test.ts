import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";
import { boxContract } from "./box.ts";
import { FILES, SHELL_WORDS } from "./box-words.ts";

boxContract(
  "docker box",
  async () => {
    const real = await realBox(FILES);
    const lose = async (): Promise<void> => {
      await engine.api.getContainer(await real.container()).kill();
    };
    return {
      box: real.box,
      words: SHELL_WORDS,
      lose,
      [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
    };
  },
  { skip },
);
