import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { scratch } from "../fixtures/scratch.ts";
import { harness, jsonLines } from "./cli.ts";
import { DIALECTS } from "./asking.ts";
import { realServer } from "./real-ollama.ts";

const { url, model } = realServer();

const FLAGS = {
  ollama: ["--provider", "ollama", "--base-url", url, "--model", model],
  openai: ["--provider", "openai", "--base-url", `${url}/v1`, "--model", model],
} as const;

interface Probed {
  readonly model: string;
  readonly native: boolean;
  readonly usable: boolean;
  /** The form that runs use, and the measurements of each form. */
  readonly calls: "native" | "text" | "held";
  readonly shares: Readonly<Record<string, { readonly valid: number; readonly asked: number } | undefined>>;
  readonly checks: Readonly<Record<string, boolean>>;
}

for (const dialect of DIALECTS)
  describe(`harness model by ${dialect}`, () => {
    test("list has the model, with a context window above zero", async () => {
      await using home = await scratch();
      const ended = await harness(["model", "list", "--json", ...FLAGS[dialect]], home.path);
      assert.equal(ended.code, 0);
      const rows = jsonLines(ended) as readonly {
        readonly model: string;
        readonly present: boolean;
        readonly context: number;
        readonly origin: { readonly context: string };
      }[];
      const [row] = rows;
      assert.equal(row?.model, model);
      assert.equal(row.present, true);
      assert.ok(row.context >= 512);
      if (dialect === "ollama") assert.equal(row.origin.context, "server");
    });

    test("probe ends, and its exit code says what it found", async (t) => {
      await using home = await scratch();
      const ended = await harness(["model", "probe", "--json", ...FLAGS[dialect]], home.path);
      const [probed] = jsonLines(ended) as readonly Probed[];
      assert.ok(probed !== undefined, ended.stderr);
      assert.equal(ended.code, probed.usable ? 0 : 5);
      assert.ok(Object.keys(probed.checks).length >= 4);
      assert.ok(probed.usable || !probed.native);
      const { native, [probed.calls]: best } = probed.shares;
      assert.ok(native !== undefined && native.asked > 0);
      // A form is chosen because its calls were valid; if all native calls were, no other form was measured.
      assert.ok(!probed.usable || (best !== undefined && best.valid > 0));
      if (native.valid < native.asked)
        assert.deepEqual(Object.keys(probed.shares).toSorted(), ["held", "native", "text"]);
      t.diagnostic(JSON.stringify(probed));
      const listed = await harness(["model", "list", "--json", ...FLAGS[dialect]], home.path);
      const [row] = jsonLines(listed) as readonly {
        readonly calls: string;
        readonly origin: { readonly calls: string };
      }[];
      assert.deepEqual([row?.calls, row?.origin.calls], [probed.calls, "probe"]);
    });
  });
