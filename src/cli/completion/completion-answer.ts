import { readFileSync } from "node:fs";
import path from "node:path";
import manifest from "../../../package.json" with { type: "json" };
import { hostFrom, packageRoot } from "../../app/host.ts";
import { type Candidate, candidateLine, word } from "../../core/wording.ts";
import { PRESETS } from "../../core/network.ts";
import { stdout } from "../../render/tty/output.ts";
import { keptLength, typedLine } from "./completion-line.ts";
import { type Catalogue, type ValueKind, type CompletionRequest, completionAt } from "./completion-wanted.ts";

/**
 * Answers the scripts of `harness completion`: takes the line up to the cursor, and the characters at which the shell
 * breaks words. Prints a line for the kind (words, files, folders), then one for each word. Loads no command, and never
 * shows a failure.
 */
export async function answerCompletion([line = "", breaks = ""]: readonly string[]): Promise<void> {
  try {
    stdout.write(`${(await completionLines(line, breaks)).join("\n")}\n`);
  } catch {
    // A person who pressed tab wants words, not an error.
    process.exitCode = 1;
  }
}

async function completionLines(line: string, breaks: string): Promise<readonly string[]> {
  const typed = typedLine(line);
  const catalogue = readCatalogue();
  const wanted = completionAt(typed, catalogue);
  if (wanted.kind === "files" || wanted.kind === "folders") return [wanted.kind];
  const found = await candidates(wanted, catalogue);
  const kept = keptLength(typed, breaks);
  const fitting = found
    .map(({ value, about }) => word(wanted.head + value, about))
    .filter(({ value }) => value.startsWith(typed.current));
  // A candidate with unsafe characters is dropped before it is cut, because a part of it might look harmless.
  const lines = fitting.flatMap((each) => {
    const text = candidateLine(each);
    return text === undefined ? [] : [text.slice(kept)];
  });
  return ["words", ...lines];
}

/** A build without a manifest has no words to offer. */
function readCatalogue(): Catalogue {
  const text = readFileSync(path.join(packageRoot, "oclif.manifest.json"), "utf8");
  const { commands } = JSON.parse(text) as Pick<Catalogue, "commands">;
  return { commands, topics: manifest.oclif.topics };
}

type Source = (wanted: CompletionRequest, catalogue: Catalogue) => Promise<readonly Candidate[]>;

const none: Source = () => Promise.resolve([]);

const SOURCES: Readonly<Record<ValueKind | "words", Source>> = {
  words: ({ words }) => Promise.resolve(words),
  files: none,
  folders: none,
  free: none,
  grants: () => Promise.resolve(PRESETS.map((preset) => word(preset, "the hosts of its registry"))),
  /** Names only: a value never leaves the environment. */
  variables: () => Promise.resolve(Object.keys(process.env).map((name) => word(`${name}@`))),
  sessions: async () => (await import("../../app/known-values.ts")).sessionWords(host(), process.cwd()),
  notes: async () => (await import("../../app/known-values.ts")).noteWords(host(), process.cwd()),
  models: async () => (await import("../../app/known-values.ts")).modelWords(host(), process.cwd()),
  servers: async () => (await import("../../app/known-values.ts")).serverWords(host()),
  settings: async () => {
    const { SEARCH_PATHS, SETTING_KEYS } = await import("../../config/settings-schema.ts");
    const keys = SETTING_KEYS.flatMap((key) => (key === "search" ? SEARCH_PATHS : [key]));
    return keys.map((key) => word(key));
  },
  "setting-values": settingValues,
};

const candidates: Source = (wanted, catalogue) => SOURCES[wanted.kind](wanted, catalogue);

const host = (): ReturnType<typeof hostFrom> => hostFrom(process.env);

/** For `config set KEY`: the values that a flag of the same setting takes, true and false, or the known models. */
async function settingValues(
  { given }: CompletionRequest,
  { commands }: Catalogue,
): Promise<readonly Candidate[]> {
  const [key = ""] = given;
  if (key.endsWith("_model")) return SOURCES.models(NOTHING, { commands, topics: {} });
  const { DEFAULTS } = await import("../../config/settings-schema.ts");
  const { STORES } = await import("../../config/setting-words.ts");
  if (key === "search.store") return STORES.map((store) => word(store));
  if (typeof DEFAULTS[key as keyof typeof DEFAULTS] === "boolean") return [word("true"), word("false")];
  const options = commands["run"]?.flags[key.replaceAll("_", "-")]?.options ?? [];
  return options.map((option) => word(option));
}

const NOTHING: CompletionRequest = { kind: "models", words: [], head: "", given: [] };
