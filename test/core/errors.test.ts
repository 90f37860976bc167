import assert from "node:assert/strict";
import test from "node:test";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../src/core/errors.ts";

const withCode = (message: string, code: unknown): Error => Object.assign(new Error(message), { code });
const refused = withCode("connect ECONNREFUSED 127.0.0.1:1", "ECONNREFUSED");

const REASONS: Readonly<Record<string, readonly [thrown: unknown, reason: string]>> = {
  "an error is its message": [new Error("no route"), "no route"],
  "a type error is its message": [new TypeError("not a function"), "not a function"],
  "a thrown text is itself": ["plain", "plain"],
  "a thrown number is written out": [7, "7"],
  "undefined is named": [undefined, "undefined"],
  "null is named": [null, "null"],
  "a symbol is written out": [Symbol("odd"), "Symbol(odd)"],
  "without a message the code serves": [withCode("", "ECONNRESET"), "ECONNRESET"],
  "with neither, the name serves": [new RangeError(""), "RangeError"],
  "a code that is not text is ignored": [withCode("", 5), "Error"],
  "fetch's empty phrase gives way to its cause": [
    new TypeError("fetch failed", { cause: refused }),
    refused.message,
  ],
  "fetch's phrase stays when the cause is not an error": [
    new TypeError("fetch failed", { cause: "x" }),
    "fetch failed",
  ],
  "a cause does not replace a meaningful message": [
    new Error("pulling failed", { cause: refused }),
    "pulling failed",
  ],
  "several failures without a message give the first": [
    new AggregateError([refused, new Error("second")], ""),
    refused.message,
  ],
  "an empty list of failures gives the name": [new AggregateError([], ""), "AggregateError"],
  "two wraps are unwrapped": [
    new TypeError("fetch failed", { cause: new AggregateError([refused], "") }),
    refused.message,
  ],
};

for (const [name, [thrown, reason]] of Object.entries(REASONS))
  test(`reasonOf: ${name}`, () => {
    assert.equal(reasonOf(thrown), reason);
  });

test("reasonOf never throws, whatever was thrown", () => {
  assert.equal(typeof reasonOf(Object.create(null)), "string");
});

const CODES: readonly (readonly [unknown, string | undefined])[] = [
  [refused, "ECONNREFUSED"],
  [{ code: "ENOENT" }, "ENOENT"],
  [{ code: 404 }, undefined],
  [new Error("none"), undefined],
  ["ENOENT", undefined],
  [null, undefined],
  [undefined, undefined],
];

test("errorCode reads the system's code and nothing else", () => {
  assert.deepEqual(
    CODES.map(([thrown]) => errorCode(thrown)),
    CODES.map(([, code]) => code),
  );
});

test("a failure carries exit code, message, remedy and cause", () => {
  const { name, message, exit, remedy, cause } = new HarnessError(
    EXIT.sandbox,
    "no engine",
    "start it",
    refused,
  );
  assert.deepEqual(
    { name, message, exit, remedy, cause },
    { name: "HarnessError", message: "no engine", exit: 6, remedy: "start it", cause: refused },
  );
});

test("a failure without cause or remedy has neither", () => {
  const failure = new HarnessError(EXIT.usage, "odd");
  assert.ok(failure instanceof Error);
  assert.deepEqual([failure.remedy, Object.hasOwn(failure, "cause")], ["", false]);
});

test("the exit codes match the contract", () => {
  assert.deepEqual(EXIT, {
    done: 0,
    failed: 1,
    usage: 2,
    budget: 3,
    refused: 4,
    model: 5,
    sandbox: 6,
    parked: 7,
    ask: 10,
    deny: 20,
    noBox: 125,
    hangup: 129,
    interrupted: 130,
    terminated: 143,
  });
});
