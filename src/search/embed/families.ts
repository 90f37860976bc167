/** What a model was trained to see before a text, by what the text is. */
export interface Tasks {
  readonly document: string;
  readonly query: string;
}

const NONE: Tasks = { document: "", query: "" };

const RETRIEVE = "Represent this sentence for searching relevant passages: ";
const INSTRUCT = "Instruct: Given a question about code, retrieve the code that answers it\nQuery:";

/**
 * As the models' own cards say. The first row that fits the name counts; of a model without one nothing is known, and
 * its texts stay as they are. all-minilm, bge-m3, gte and jina's v2 want nothing.
 */
const FAMILIES: readonly (readonly [RegExp, Tasks])[] = [
  [/nomic-embed-code/, { document: "", query: "Represent this query for searching relevant code: " }],
  [/nomic-embed/, { document: "search_document: ", query: "search_query: " }],
  [/mxbai-embed/, { document: "", query: RETRIEVE }],
  [/arctic-embed-?(?:l-|m-)?(?:v)?2/, { document: "", query: "query: " }],
  [/arctic-embed/, { document: "", query: RETRIEVE }],
  [/(?:^|[/-])e5-.*instruct/, { document: "", query: `${INSTRUCT} ` }],
  [/(?:^|[/-])e5(?:[-:]|$)/, { document: "passage: ", query: "query: " }],
  [/bge-m3/, NONE],
  [/bge-(?:small|base|large)-en|bge-(?:small|base|large)(?::|$)/, { document: "", query: RETRIEVE }],
  [/qwen3-embedding/, { document: "", query: INSTRUCT }],
  [/embedding-?gemma/, { document: "title: none | text: ", query: "task: code retrieval | query: " }],
];

/** Names as servers spell them, with or without a maker and a tag. */
export function tasksOf(model: string): Tasks {
  const name = model.toLowerCase();
  return FAMILIES.find(([form]) => form.test(name))?.[1] ?? NONE;
}
