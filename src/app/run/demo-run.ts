import { cp, lchown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Finished } from "../../agent/agent-run.ts";
import { Limits } from "../../agent/limits.ts";
import type { Config } from "../../config/load-config.ts";
import { SETTING_KEYS, type Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Host, packageRoot } from "../host.ts";
import { interruption } from "../interruption.ts";
import { newSession, openSessions } from "../sessions/session-access.ts";
import { holdSession } from "../sessions/session-hold.ts";
import { noteTo } from "../stderr-messages.ts";
import { runTask } from "./run-task.ts";

const TASK = "Find out why there is a failing test, and mend the bug.";

/** A whole run over a copy of the example, done as `run` does it. */
export async function runDemo(
  host: Host,
  config: Config,
  flags: { readonly json: boolean; readonly quiet: boolean },
): Promise<Finished> {
  const settings = settingsFor(config);
  using interrupted = interruption();
  const warn = noteTo(flags.quiet);
  using store = openSessions(host, warn);
  return await inExampleCopy(async (workspace) => {
    const session = newSession(store, settings, { workspace, prompt: TASK });
    await using _held = await holdSession(host, session.id);
    // The changes of a copy are thrown away with the folder.
    await using after = new AsyncDisposableStack();
    if (settings.isolation === "copy")
      after.defer(async () => {
        const { removeLayer } = await import("../sessions/session-changes.ts");
        await removeLayer(host, session);
      });
    return await runTask({
      host,
      settings,
      origins: { ...config.origins, ...demoOrigins(settings, config.settings) },
      flags: { json: flags.json, quiet: flags.quiet, strict: false, passing: true, intent: "change" },
      limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
      store,
      session,
      resumed: false,
      workspace,
      warn,
      prompt: TASK,
      signal: interrupted.signal,
    });
  });
}

/** The user's own model if one was chosen; otherwise the scenario. */
function settingsFor({ settings, origins }: Config): Settings {
  const chosen = ["provider", "chat_model", "base_url"].some((key) => origins[key] !== "default");
  // An engine on another machine can only make boxes over a copy.
  const isolation = settings.isolation === "copy" ? "copy" : "bind";
  const box = { mode: "workspace-write", isolation, on_ask: "contained" } as const;
  if (chosen) return { ...settings, ...box };
  const chat_model = path.join(packageRoot, "examples", "scripted-demo.jsonl");
  return { ...settings, ...box, provider: "scripted", chat_model };
}

/** The settings that the demo itself sets. */
const demoOrigins = (used: Settings, own: Settings): Readonly<Record<string, string>> =>
  Object.fromEntries(
    SETTING_KEYS.filter((key) => used[key] !== own[key]).map((key) => [key, "demo"] as const),
  );

/** Works on a copy of the example repository, owned by an ordinary user even if harness runs as root. */
async function inExampleCopy<T>(work: (workspace: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-demo-")).catch(noCopy);
  try {
    await fill(folder).catch(noCopy);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const NOBODY = 65_534;

async function fill(folder: string): Promise<void> {
  await cp(path.join(packageRoot, "examples", "broken-sum"), folder, { recursive: true });
  if (process.getuid?.() !== 0) return;
  for (const name of ["", ...(await readdir(folder))]) await lchown(path.join(folder, name), NOBODY, NOBODY);
}

function noCopy(thrown: unknown): never {
  const message = `the demo's copy could not be made in ${tmpdir()}: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.failed, message, "TMPDIR=/a/folder/with/space harness demo", thrown);
}
