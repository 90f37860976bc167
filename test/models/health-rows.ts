import type { Health } from "../../src/core/errors.ts";
import { modelHealth, type ModelHealthRequest } from "../../src/models/model-server.ts";

/** Doctor's result for a model server, as rows that do not depend on its address. */

export type HealthRow = readonly [id: string, state: string, detail: string, remedy: string];

export const health = (changes: Partial<ModelHealthRequest>): Promise<readonly Health[]> =>
  modelHealth({
    provider: "ollama",
    baseUrl: null,
    model: "qwen3:8b",
    maxContext: null,
    env: {},
    keysFile: "/nowhere/keys.json",
    signal: new AbortController().signal,
    memory: null,
    ...changes,
  });

export const healthRows = (list: readonly Health[], url: string): readonly HealthRow[] =>
  list.map(({ id, state, detail, remedy }): HealthRow => [
    id,
    state,
    detail.replaceAll(url, "URL"),
    remedy.replaceAll(url, "URL"),
  ]);

export const contextRow = (state: string, detail: string, remedy = ""): HealthRow => [
  "model.context",
  state,
  detail,
  remedy,
];

export const serverDown = (detail: string, remedy: string): HealthRow => [
  "model.server",
  "fail",
  detail,
  remedy,
];
