import type { Embedder } from "../../core/ports.ts";
import { askForList, BatchEmbedder, type EmbedLimits } from "../embed-batches.ts";
import { asCount, asFields } from "../http/answer-fields.ts";
import type { OpenAiOptions } from "./openai-api.ts";

/** `/embeddings` of every server that speaks OpenAI's API. */
export function openAiEmbedder(
  { baseUrl, key = "" }: OpenAiOptions,
  model: string,
  limits: Partial<EmbedLimits> = {},
): Embedder {
  const url = `${baseUrl.replace(/\/+$/, "")}/embeddings`;
  const asked = { url, model, key: key.trim(), keyName: "OPENAI_API_KEY", tools: false };
  const headers: Record<string, string> = asked.key === "" ? {} : { authorization: `Bearer ${asked.key}` };
  return new BatchEmbedder(async (input, signal) => {
    const body = { model, input, encoding_format: "float" };
    const rows = await askForList("data", { asked, headers, body, signal });
    return rows
      .map((row, place) => ({ place: asCount(asFields(row)?.["index"]) ?? place, row: asFields(row) }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ row }) => row?.["embedding"]);
  }, limits);
}
