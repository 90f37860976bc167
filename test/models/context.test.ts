import assert from "node:assert/strict";
import test from "node:test";
import { contextInForce, type ContextRequest } from "../../src/models/providers/ollama-server.ts";

const GiB = 2 ** 30;
const NOTHING: ContextRequest = { trained: null, maxContext: null, memory: null, modelSize: null };

const CASES: readonly (readonly [string, Partial<ContextRequest>, number, string])[] = [
  ["nothing is known", {}, 32_768, "default"],
  ["the model was trained for more", { trained: 262_144 }, 32_768, "default"],
  ["the model was trained for less", { trained: 8192 }, 8192, "trained"],
  ["the user asks for more than the model has", { trained: 40_960, maxContext: 131_072 }, 40_960, "trained"],
  ["the user asks for more than the default", { trained: 262_144, maxContext: 131_072 }, 131_072, "setting"],
  ["the user asks for less", { trained: 40_960, maxContext: 4096 }, 4096, "setting"],
  ["the user asks and the model reports nothing", { maxContext: 65_536 }, 65_536, "setting"],
  ["memory is ample", { trained: 40_960, memory: 64 * GiB, modelSize: 5 * GiB }, 32_768, "default"],
  ["memory is short", { trained: 40_960, memory: 16 * GiB, modelSize: 5 * GiB }, 28_672, "memory"],
  ["memory does not even hold the model", { memory: 4 * GiB, modelSize: 5 * GiB }, 4096, "memory"],
  ["only the memory is known", { memory: 4 * GiB }, 32_768, "default"],
  [
    "the user asks for more than the estimate of memory",
    { trained: 40_960, maxContext: 40_000, memory: 8 * GiB, modelSize: 5 * GiB },
    40_000,
    "setting",
  ],
];

for (const [when, known, tokens, limit] of CASES)
  test(`when ${when} the window is ${tokens} tokens, bounded by ${limit}`, () => {
    assert.deepEqual(contextInForce({ ...NOTHING, ...known }), { tokens, limit });
  });
