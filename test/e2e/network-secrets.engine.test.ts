import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { FINE } from "./parked.ts";
import { bash, finishedOf, harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";
import { holding, holds, service, VALUE } from "./secret-service.ts";

test(
  "a secret reaches its host by https, and does not appear in output, events, state, index or reports",
  { skip },
  async () => {
    const { at, pem, asked } = await service();
    await using place = await household({
      "notes.md": `the token is ${VALUE}\n`,
      "a.js": "export const a = 1;\n",
    });
    await place.write("ca.pem", pem);
    const settings = { secrets: { API_TOKEN: ["localhost"] }, allow_domains: [`${at}:private`] };
    await place.write(".config/harness/config.json", JSON.stringify(settings));
    const say = `curl -sS --noproxy '' -H "Authorization: Bearer $API_TOKEN" -d "token=$API_TOKEN" https://${at}/who`;
    await using model = await startModel([
      bash(
        `${say} | tee said; printenv API_TOKEN; env | grep -c plover`,
        "cat notes.md; base64 notes.md >&2",
      ),
      {
        calls: [
          ["read_file", { path: "notes.md" }],
          ["grep", { pattern: "token" }],
        ],
      },
      { calls: [["write_file", { path: "made.md", content: "made\n" }]] },
      FINE,
    ]);
    const env = {
      API_TOKEN: VALUE,
      NODE_EXTRA_CA_CERTS: place.at("ca.pem"),
      OLLAMA_HOST: `127.0.0.1:${model.port}`,
    };
    const ran = await harness(
      place,
      ["run", "--json", "--secret", "API_TOKEN", ...model.flags, "change it"],
      { env },
    );
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(asked, [`Bearer ${VALUE} token=${VALUE}`], "the twin: its host has it");
    assert.match(
      resultsIn(model.asked()[1]).join("\n"),
      /you said Bearer harness-secret-\w+ token=harness-secret-/,
    );
    const { session } = finishedOf(ran);
    const words = [
      ["report", session],
      ["report", session, "--html", place.at("report.html")],
      ["sessions", "export", session],
      ["diff", session],
      ["index"],
    ];
    const texts = [ran.stdout, ran.stderr, JSON.stringify(model.asked())];
    for (const each of words) {
      const { code, stdout, stderr } = await harness(place, each, { env });
      assert.equal(code, 0, `${each.join(" ")}: ${stderr}`);
      texts.push(stdout + stderr);
    }
    assert.deepEqual(
      texts.map(holds),
      texts.map(() => false),
    );
    const held = (await holding(place.path)).filter((file) => !file.includes("/harness/checkpoints/"));
    assert.deepEqual(held, [place.at("work/notes.md")], "what was there alone; undo wants it as it was");
    const found = await harness(place, ["search", "--json", "the token is"], { env });
    assert.match(found.stdout, /the token is \[secret: API_TOKEN\]/, "the twin: the file is in the index");
  },
);
