import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFINABLE,
  formFor,
  IDENTIFIER,
  PART,
  SEVERAL_WORDS,
  stem,
  Tokenizer,
  WORD_AND_NUMBER,
  WORD_RUN,
} from "../../src/search/tokens.ts";
import { anyText, fc } from "../fixtures/property.ts";

const of = (text: string): readonly string[] => [...new Tokenizer().count(text).keys()];

const CASES: Readonly<Record<string, readonly string[]>> = {
  HTTPServer: ["http", "server", "httpserver"],
  parseJSONBody: ["pars", "json", "bodi", "parsejsonbody"],
  MAX_RETRY_COUNT: ["max", "retri", "count", "maxretrycount"],
  sha256: ["sha256", "sha"],
  utf8Decoder: ["utf8", "utf", "decod", "utf8decoder"],
  "src/bearer-auth/index.ts": ["src", "bearer", "auth", "index", "ts"],
  $scope: ["scope"],
  "a b c": [],
  getÜberschrift: ["get", "überschrift", "getüberschrift"],
  検索する: ["検索する"],
};

test("identifiers are found by their parts and as a whole", () => {
  for (const [text, words] of Object.entries(CASES)) assert.deepEqual(of(text), words, text);
});

test("a query's spelling of an identifier matches the code's", () => {
  for (const [asked, written] of [
    ["http server", "class HTTPServer {"],
    ["max_retry_count", "maxRetryCount"],
    ["validating tokens", "function validateToken()"],
  ] as const) {
    const there = new Set(of(written));
    for (const word of of(asked)) assert.ok(there.has(word), `${asked}: ${word}`);
  }
});

test("any text gives short lower-case words without characters that SQLite sorts differently", () => {
  const tokenizer = new Tokenizer(10);
  fc.assert(
    fc.property(anyText({ maxLength: 200 }), (text) => {
      for (const [word, often] of tokenizer.count(text)) {
        assert.ok(often > 0 && word.length >= 2 && word.length <= 200, word);
        assert.doesNotMatch(word, /[\ud800-\udfff\s]/);
        assert.equal(word, word.toLowerCase());
      }
    }),
  );
});

test("a sequence too long to be a word is ignored", () => {
  assert.deepEqual(of("x".repeat(65)), []);
  assert.deepEqual(of("x".repeat(64)), ["x".repeat(64)]);
});

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

test("all forms of a word have the same stem", () => {
  for (const forms of ALIKE) assert.equal(new Set(forms.map(stem)).size, 1, forms.join(" "));
});

test("stems are those of Porter's algorithm", () => {
  for (const [word, known] of Object.entries(KNOWN)) assert.equal(stem(word), known, word);
});

test("anything but a plain word stays unchanged", () => {
  for (const word of ["is", "a1s", "Ends", "größen", "s3s", ""]) assert.equal(stem(word), word);
});

const PATTERNS = { DEFINABLE, IDENTIFIER, PART, SEVERAL_WORDS, WORD_AND_NUMBER, WORD_RUN };

test("the two forms of a pattern find the same in every ASCII text, and other texts get the Unicode form", () => {
  const ascii = fc.string({ unit: "binary-ascii", maxLength: 60 });
  const name = fc.string({ unit: fc.constantFrom(...Array.from("aZbYz09_$?!. ")), maxLength: 20 });
  for (const [called, pattern] of Object.entries(PATTERNS)) {
    fc.assert(
      fc.property(fc.oneof(ascii, name), (text) => {
        assert.equal(formFor(text, pattern), pattern.ascii);
        assert.deepEqual(text.match(pattern.ascii), text.match(pattern.unicode), called);
      }),
    );
    for (const text of ["é", "aß", "検索", "\u{1D44E}x"])
      assert.equal(formFor(text, pattern), pattern.unicode);
  }
});
