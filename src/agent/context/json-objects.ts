/** A reply with more openings than this is no answer in JSON. */
const MOST_TRIES = 50;

/** The JSON objects of a text that stand in nothing else, in their order; fences and prose around them do not matter. */
export function* jsonObjects(text: string): Generator<object> {
  let start = text.indexOf("{");
  for (let tries = 0; start !== -1 && tries < MOST_TRIES; tries += 1) {
    const end = closing(text, start);
    const found = end === undefined ? undefined : objectIn(text.slice(start, end));
    if (found !== undefined) yield found;
    start = text.indexOf("{", found === undefined || end === undefined ? start + 1 : end);
  }
}

/** Behind the bracket that closes the one at `start`. */
function closing(text: string, start: number): number | undefined {
  let depth = 0;
  const signs = /"(?:[^"\\]|\\[^])*"|[{}]/g;
  signs.lastIndex = start;
  for (let sign = signs.exec(text); sign !== null; sign = signs.exec(text)) {
    if (sign[0] === "{") depth += 1;
    else if (sign[0] === "}") depth -= 1;
    if (depth === 0) return signs.lastIndex;
  }
  return undefined;
}

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
