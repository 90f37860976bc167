import path from "node:path";
import { Limits } from "../../agent/limits.ts";
import type { Finished } from "../../agent/run.ts";
import type { Config } from "../../config/load.ts";
import { SETTING_KEYS, type Settings } from "../../config/schema.ts";
import { noteTo } from "../note.ts";
import { packageRoot } from "../package-root.ts";
import { play } from "../run/play.ts";
import { newSession } from "../run/session-choice.ts";
import { interruption } from "../run/signals.ts";
import { openSessions } from "../session-seat.ts";
import { configFor } from "../settings.ts";
import { inExampleCopy } from "./copy.ts";

const TASK = "Find out why there is a failing test, and mend the bug.";

/** A whole run over a copy of the example, as `run` does it. */
export async function runDemo(
  flags: Readonly<Record<string, unknown>> & { readonly json: boolean; readonly quiet: boolean },
): Promise<Finished> {
  const config = await configFor(flags);
  const settings = settingsFor(config);
  using interrupted = interruption();
  using store = openSessions(noteTo(flags.quiet));
  return await inExampleCopy((workspace) =>
    play({
      settings,
      origins: { ...config.origins, ...demoOrigins(settings, config.settings) },
      flags: { json: flags.json, quiet: flags.quiet, strict: false, passing: true, intent: "change" },
      limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
      store,
      session: newSession(store, settings, { workspace, prompt: TASK }),
      resumed: false,
      workspace,
      prompt: TASK,
      signal: interrupted.signal,
    }),
  );
}

/** The user's own model where one was chosen; else the scenario. */
function settingsFor({ settings, origins }: Config): Settings {
  const chosen = ["provider", "chat_model", "base_url"].some((key) => origins[key] !== "default");
  const box = { mode: "workspace-write", isolation: "bind", on_ask: "contained" } as const;
  if (chosen) return { ...settings, ...box };
  const chat_model = path.join(packageRoot, "examples", "scripted-demo.jsonl");
  return { ...settings, ...box, provider: "scripted", chat_model };
}

/** What the demo sets itself. */
const demoOrigins = (used: Settings, given: Settings): Readonly<Record<string, string>> =>
  Object.fromEntries(
    SETTING_KEYS.filter((key) => used[key] !== given[key]).map((key) => [key, "demo"] as const),
  );
