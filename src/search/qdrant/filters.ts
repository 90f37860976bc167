import { DENSE } from "./points.ts";

/** Conditions over payloads, as Qdrant takes them. */
export interface Filter {
  readonly must?: Condition[];
  readonly must_not?: Condition[];
}

type Condition =
  | { readonly key: string; readonly match: { readonly value: string } }
  | { readonly key: string; readonly match: { readonly any: string[] } }
  | { readonly key: string; readonly range: { readonly lt: number } }
  | { readonly has_id: string[] }
  | { readonly has_vector: string };

const is = (key: string, value: string): Condition => ({ key, match: { value } });
const among = (key: string, any: readonly string[]): Condition => ({ key, match: { any: [...any] } });

export const ofIndex = (index: string): Filter => ({ must: [is("index", index)] });
export const filesOf = (index: string): Filter => ({ must: [is("index", index), is("what", "file")] });
export const chunksOf = (index: string): Filter => ({ must: [is("index", index), is("what", "chunk")] });

export const embeddedOf = (index: string): Filter => ({
  must: [...(chunksOf(index).must ?? []), { has_vector: DENSE }],
});

export const unembeddedOf = (index: string): Filter => ({
  ...chunksOf(index),
  must_not: [{ has_vector: DENSE }],
});

/** All that is there of the paths, but the points named. */
export const ofPaths = (index: string, paths: readonly string[], but: readonly string[] = []): Filter => ({
  must: [is("index", index), among("path", paths)],
  ...(but.length === 0 ? {} : { must_not: [{ has_id: [...but] }] }),
});

/** What was written of these versions before the moment. */
export const ofVersions = (index: string, versions: readonly string[], before: number): Filter => ({
  must: [is("index", index), among("version", versions), { key: "written", range: { lt: before } }],
});
