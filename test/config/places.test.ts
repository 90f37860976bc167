import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { placesFrom } from "../../src/config/places.ts";

const USUAL = {
  home: "/h",
  configFiles: ["/h/.config/harness/config.json", "/h/.harness/config.json"],
  state: "/h/.local/state/harness",
  cache: "/h/.cache/harness",
};

const PLACES: Readonly<Record<string, readonly [env: Record<string, string>, places: object]>> = {
  "below HOME": [{ HOME: "/h" }, USUAL],
  "in the XDG folders where these are set": [
    { HOME: "/h", XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s", XDG_CACHE_HOME: "/k" },
    {
      home: "/h",
      configFiles: ["/c/harness/config.json", "/h/.harness/config.json"],
      state: "/s/harness",
      cache: "/k/harness",
    },
  ],
  "not in XDG folders that are relative": [
    { HOME: "/h", XDG_CONFIG_HOME: "c", XDG_STATE_HOME: "./s", XDG_CACHE_HOME: ".." },
    USUAL,
  ],
  "not in XDG folders that are empty": [
    { HOME: "/h", XDG_CONFIG_HOME: "", XDG_STATE_HOME: "", XDG_CACHE_HOME: "" },
    USUAL,
  ],
};

for (const [name, [env, places]] of Object.entries(PLACES))
  test(`our files are ${name}`, () => {
    assert.deepEqual(placesFrom(env), places);
  });

for (const env of [{}, { HOME: "" }, { HOME: "." }, { HOME: "repo" }])
  test(`with ${JSON.stringify(env)} none of our files is in the current folder`, () => {
    const { home, configFiles, state, cache } = placesFrom(env);
    const relative = [home, ...configFiles, state, cache].filter((place) => !path.isAbsolute(place));
    assert.deepEqual(relative, []);
  });
