import { parentPort } from "node:worker_threads";
import { Cutter } from "./cut-file.ts";
import type { CutAnswer, CutQuestion } from "./cutting.ts";

/** The worker thread that cuts files; it ends when its port closes. */
const cutter = new Cutter();

parentPort?.on("message", ({ id, path, bytes }: CutQuestion) => {
  void cutter
    .cut(path, Buffer.from(bytes))
    .then((cut) => parentPort?.postMessage({ id, cut } satisfies CutAnswer, []));
});
