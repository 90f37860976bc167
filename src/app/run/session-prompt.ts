import path from "node:path";
import {
  briefing,
  gather,
  type InstructionFile,
  INSTRUCTIONS,
  renderInstructions,
  systemPrompt,
} from "../../agent/prompt.ts";
import type { History } from "../../agent/history.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { readRegularHead } from "../../platform/safe-files.ts";
import type { Host } from "../host.ts";
import { type RepositoryAround, repositoryAround } from "../project/repository-around.ts";
import type { LazyBox } from "./lazy-box.ts";

export interface SessionPrompt {
  readonly text: string;
  /** Instructions of the project that are part of the prompt. */
  readonly shown: ReadonlySet<string>;
  /** The number of bytes left for instructions in folders further down. */
  readonly room: number;
}

type PromptSettings = Pick<Settings, "mode" | "allow_domains" | "install_scripts" | "isolation">;

/** The prompt of a new session: the constant part, the instructions that exist at its start, and what users `added`. */
export async function sessionPrompt(
  host: Host,
  { mode, allow_domains: domains, install_scripts: scripts, isolation }: PromptSettings,
  workspace: string,
  added = "",
): Promise<SessionPrompt> {
  const { own, project, above } = await instructionsFor(host, workspace);
  const top = isolation === "copy" ? undefined : above?.top;
  const yours = renderInstructions(own, { trusted: true });
  const theirs = renderInstructions(project, { trusted: false, room: bytesLeftBeside(yours) });
  const instructions = [yours, theirs, added].filter((text) => text !== "").join("\n\n");
  return {
    text: systemPrompt({ workspace, top, mode, domains, scripts, instructions }),
    shown: new Set(project.map(({ path }) => path)),
    room: bytesLeftBeside(instructions),
  };
}

const bytesLeftBeside = (rendered: string): number => Math.max(0, INSTRUCTIONS - Buffer.byteLength(rendered));

/** A file of instructions, with the name that the prompt gives it and its path. */
export interface FoundInstructions extends InstructionFile {
  readonly file: string;
}

/** The files from which a new session's prompt takes instructions. */
export async function instructionsFor(
  host: Host,
  workspace: string,
): Promise<{
  readonly own: readonly FoundInstructions[];
  readonly project: readonly FoundInstructions[];
  readonly above: RepositoryAround | undefined;
}> {
  const above = await repositoryAround(host, workspace);
  const [own, project] = await Promise.all([ownInstructions(host), projectInstructions(workspace, above)]);
  return { own, project, above };
}

/** Both names are equivalent; both files may exist. */
const NAMES = ["AGENTS.md", "CLAUDE.md"];
const MAX_FILE_BYTES = 64 * 1024;

/**
 * The instructions at the top of the workspace, and of the folders above it in its repository; they are part of the
 * first prompt. Instructions further down are read in the box. Only plain files count: a link could lead anywhere, and
 * reading a pipe could block for ever.
 */
async function projectInstructions(
  workspace: string,
  above: RepositoryAround | undefined,
): Promise<readonly FoundInstructions[]> {
  const folders = (above?.folders ?? []).map((folder, at, { length }) =>
    filesIn(folder, "../".repeat(length - at)),
  );
  return (await Promise.all([...folders, filesIn(workspace, "")])).flat();
}

const OWN_MARK = "(the user's own) ";

/** Where other agents keep their user's global instructions. */
const OTHER_AGENTS: readonly (readonly [folder: string, name: string])[] = [
  [".claude", "CLAUDE.md"],
  [".codex", "AGENTS.md"],
];

/** The user's own instructions, for every workspace: those of harness, or else those written for other agents. */
async function ownInstructions({ places }: Host): Promise<readonly FoundInstructions[]> {
  const [settings] = places.configFiles;
  const own = await filesIn(path.dirname(settings), OWN_MARK);
  if (own.length > 0) return own;
  const others = await Promise.all(
    OTHER_AGENTS.map(([folder, name]) =>
      filesIn(path.join(places.home, folder), `${OWN_MARK}~/${folder}/`, [name]),
    ),
  );
  const texts = new Set<string>();
  return others.flat().filter(({ text }) => !texts.has(text) && texts.add(text));
}

async function filesIn(folder: string, mark: string, names = NAMES): Promise<readonly FoundInstructions[]> {
  const texts = await Promise.all(names.map((name) => plainText(path.join(folder, name))));
  return names.flatMap((name, at) => {
    const text = texts[at];
    if (text === undefined || text.trim() === "") return [];
    const file = path.join(folder, name);
    return [{ path: `${mark}${name}`, file, text, cut: text.length >= MAX_FILE_BYTES }];
  });
}

async function plainText(file: string): Promise<string | undefined> {
  try {
    const bytes = await readRegularHead(file, { links: "refuse", max: MAX_FILE_BYTES });
    return new TextDecoder().decode(bytes);
  } catch {
    // An unreadable file gives no instructions; the model may still find it in the box.
    return undefined;
  }
}

/**
 * Gathers the briefing as soon as there is a box, so that it is ready when needed. It is given as long as the history
 * does not have it.
 */
export function briefingFrom(
  box: LazyBox,
  { shown, room }: SessionPrompt,
  { history, signal }: { readonly history: History; readonly signal: AbortSignal },
): () => Promise<string | undefined> {
  const gathered = box.opened.then(async (opened) => {
    const facts = await gather(opened, signal);
    const instructions = facts.instructions.filter(({ path }) => !shown.has(path));
    return briefing({ ...facts, instructions }, { trusted: false, room });
  });
  // The briefing describes the start, so it must not see what a first call writes.
  box.holdFor(gathered);
  gathered.catch(() => undefined);
  return async () => {
    if (box.used() === undefined) return undefined;
    const text = await gathered.catch(() => "");
    return text === "" || isInHistory(text, history) ? undefined : text;
  };
}

/** The first line of a briefing is the same, whatever the workspace is like. */
function isInHistory(text: string, { messages }: History): boolean {
  const [head = ""] = text.split("\n", 1);
  return messages.some((message) => message.role !== "assistant" && message.text.includes(head));
}
