import assert from "node:assert/strict";
import test from "node:test";
import { toCsv } from "./csv.ts";

test("plain", () => assert.equal(toCsv([["a", "b"], ["c", ""]]), "a,b\nc,\n"));
test("comma", () => assert.equal(toCsv([["a,b", "c"]]), '"a,b",c\n'));
test("quote", () => assert.equal(toCsv([['say "hi"']]), '"say ""hi"""\n'));
test("line end", () => assert.equal(toCsv([["a\nb"]]), '"a\nb"\n'));
