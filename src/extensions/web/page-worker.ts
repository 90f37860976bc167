import { parentPort, workerData } from "node:worker_threads";
import { htmlTree } from "./html-tree.ts";
import type { PageQuestion } from "./web-text.ts";
import { readable } from "./readable-text.ts";

/** The thread that reads one page. */
const { html, url } = workerData as PageQuestion;
const { root, cut } = htmlTree(html);
const read = readable(root, url);
parentPort?.postMessage({ ...read, cut: cut || read.cut }, []);
