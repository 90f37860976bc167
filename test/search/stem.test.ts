import assert from "node:assert/strict";
import { test } from "node:test";
import { stem } from "../../src/search/tokens.ts";

const ALIKE: readonly (readonly string[])[] = [
  ["validate", "validates", "validation", "validating", "validated"],
  ["cache", "caches", "cached", "caching"],
  ["query", "queries"],
  ["parse", "parses", "parsed", "parsing"],
  ["match", "matches", "matching"],
  ["connect", "connects", "connection", "connections", "connecting"],
  ["allocate", "allocation", "allocator", "allocating"],
  ["configure", "configuration", "configured"],
  ["hop", "hops", "hopping"],
  ["agree", "agreed"],
];

/** From the paper's own tables. */
const KNOWN: Readonly<Record<string, string>> = {
  caresses: "caress",
  ponies: "poni",
  feed: "feed",
  plastered: "plaster",
  sing: "sing",
  falling: "fall",
  hissing: "hiss",
  filing: "file",
  happy: "happi",
  sky: "sky",
  relational: "relat",
  digitizer: "digit",
  hopefulness: "hope",
  triplicate: "triplic",
  electrical: "electr",
  adoption: "adopt",
  probate: "probat",
  controll: "control",
};

test("forms of one word have one stem", () => {
  for (const forms of ALIKE) assert.equal(new Set(forms.map(stem)).size, 1, forms.join(" "));
});

test("stems are Porter's", () => {
  for (const [word, known] of Object.entries(KNOWN)) assert.equal(stem(word), known, word);
});

test("what is no plain word stays as it is", () => {
  for (const word of ["is", "a1s", "Ends", "größen", "s3s", ""]) assert.equal(stem(word), word);
});
