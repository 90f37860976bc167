import { parentPort } from "node:worker_threads";
import { Cutter } from "../chunk/cut-file.ts";
import type { CutAnswer, CutQuestion } from "./cutting.ts";

/** The program of a thread that cuts files; it ends when nobody speaks to it any more. */
const cutter = new Cutter();

parentPort?.on("message", ({ id, path, bytes }: CutQuestion) => {
  void cutter
    .cut(path, Buffer.from(bytes))
    .then((cut) => parentPort?.postMessage({ id, cut } satisfies CutAnswer, []));
});
