import path from "node:path";
import { Memory } from "../../agent/context/memory.ts";
import { offersOf } from "../../agent/simple-tools.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type AnyTool, type Extensions, type Hooks, NO_HOOKS } from "../../core/tool.ts";
import type { ToolOffer } from "../../core/model-provider.ts";
import type { Plan } from "../../core/run-record.ts";
import type { Box, Index } from "../../core/ports.ts";
import { parkedIn, type Session, type SessionRecord, type SessionStore } from "../../core/session.ts";
import { toolsFor } from "../../tools/index.ts";
import type { AskPerson, Subagents, ToolContext } from "../../tools/tool-context.ts";
import {
  type InstructionFile,
  instructionsOrNames,
  MAX_INSTRUCTION_BYTES,
  renderInstructions,
  systemPrompt,
} from "../../agent/context/prompt.ts";
import { type History, PromptSize } from "../../agent/context/history.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { type Links, readRegularHead } from "../../platform/safe-files.ts";
import type { Host } from "../host.ts";
import { type RepositoryAround, repositoryAround } from "../project/repository-around.ts";
import type { LazyBox } from "./lazy-box.ts";
import { briefing, gatherFacts } from "../../agent/context/workspace-facts.ts";

/** State that lasts from request to request of one session: what the model knows, and its tools. */
export interface SessionState {
  readonly memory: Memory;
  /** The current tools: the built-in ones, then those that users added. */
  readonly tools: readonly AnyTool[];
  /** What the model is told of them. */
  readonly offers: readonly ToolOffer[];
  readonly hooks: Hooks;
  readonly childTools: (child: Memory) => readonly AnyTool[];
  /** Sets what the tools use while a request is worked on. */
  readonly beginRequest: (use: RequestUse) => void;
  /** What was learnt of a model's token count; it stays until another model is asked. */
  readonly sizeFor: (model: string) => PromptSize;
}

interface RequestUse {
  /** The model has few parameters. */
  readonly isWeak: boolean;
  /** Does the work of `task`. */
  readonly subagents: Subagents;
  /** Finds exported variables that no later command gets. */
  readonly refused: NonNullable<ToolContext["refused"]>;
  readonly planned: (plan: Plan) => void;
}

export interface SessionStateParts {
  readonly session: Session;
  readonly store: SessionStore;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly settings: Pick<Settings, "timeout">;
  /** The system prompt for a session that has none yet. */
  readonly prompt: string;
  readonly index: Index;
  readonly extensions: Pick<Extensions, "tools" | "hooks">;
  /** The person whom the model can ask, if there is one. */
  readonly person?: AskPerson | undefined;
  /** A replay: notes are read, but none is stored. */
  readonly passing?: boolean;
  /** Resume calls that wait for a person; otherwise they are given up. */
  readonly waits?: boolean;
}

export function sessionState({
  session,
  store,
  workspace,
  settings,
  prompt,
  index,
  extensions,
  person,
  passing = false,
  waits = false,
}: SessionStateParts): SessionState {
  if (!waits) giveUp(session);
  const records = session.records();
  const record = (each: SessionRecord): void => session.append(each);
  const memory = new Memory(workspace, records, record, { open: waits ? "come" : "closed" });
  memory.history.pin(prompt);
  const kept = store.notes(workspace);
  const notes = passing ? { find: kept.find.bind(kept), write: () => undefined } : kept;
  const builtIn = (
    { seen, shell, name: agent }: Memory,
    own: Pick<ToolContext, "subagents" | "plan" | "person"> = {},
  ): readonly AnyTool[] =>
    toolsFor({
      agent,
      workspace,
      seen,
      shell,
      outputs: session.outputs,
      notes,
      timeoutMs: settings.timeout,
      isWeak: () => use.isWeak,
      index,
      refused: (variables) => use.refused(variables),
      ...own,
    });
  let use: RequestUse = NO_REQUEST;
  const main = builtIn(memory, {
    subagents: {
      run: (part, signal) => use.subagents.run(part, signal),
      begin: (part, signal) => use.subagents.begin(part, signal),
      look: (look, signal) => use.subagents.look(look, signal),
    },
    plan: (plan) => {
      memory.planned(plan);
      use.planned(plan);
    },
    ...(person === undefined ? {} : { person }),
  });
  const tools = withAdded(main, extensions.tools);
  const lastOffers = keptOffers();
  const offers = (): readonly ToolOffer[] => lastOffers(tools(), use.isWeak);
  const sized: { last?: { readonly model: string; readonly size: PromptSize } } = {};
  return {
    memory,
    hooks: extensions.hooks ?? NO_HOOKS,
    get tools() {
      return tools();
    },
    get offers() {
      return offers();
    },
    childTools: (child) => withAdded(builtIn(child), extensions.tools)(),
    beginRequest: (now) => {
      use = now;
    },
    sizeFor: (model) => {
      if (sized.last?.model !== model) sized.last = { model, size: new PromptSize(model, offers) };
      return sized.last.size;
    },
  };
}

/** Returns the same list as long as nothing was added or removed. */
function withAdded(builtIn: readonly AnyTool[], added: () => readonly AnyTool[]): () => readonly AnyTool[] {
  const last: { added: readonly AnyTool[]; all: readonly AnyTool[] } = { added: [], all: builtIn };
  return () => {
    const now = added();
    if (now !== last.added) Object.assign(last, { added: now, all: [...builtIn, ...now] });
    return last.all;
  };
}

/** Returns the same list for the same tools: its size is measured once. */
function keptOffers(): typeof offersOf {
  let last: { tools: readonly ToolOffer[]; isWeak: boolean; offers: readonly ToolOffer[] } | undefined;
  return (tools, isWeak) => {
    if (last?.tools !== tools || last.isWeak !== isWeak)
      last = { tools, isWeak, offers: offersOf(tools, isWeak) };
    return last.offers;
  };
}

/** Withdraws the pending question; it can no longer be approved. */
function giveUp(session: Session): void {
  const question = parkedIn(session.records())?.question;
  if (question === undefined) return;
  const none = { kind: "answered", question, word: "never" } as const;
  if (session.appendIf(none, (records) => parkedIn(records) !== undefined)) return;
  throw new HarnessError(
    EXIT.usage,
    `somebody has just approved what waits in ${session.id}: that run continues now`,
    `harness sessions show ${session.id}`,
  );
}

const NONE = { kind: "failed", cause: "program", text: "No subagent can be started now." } as const;
const NO_REQUEST: RequestUse = {
  isWeak: false,
  subagents: { run: () => Promise.resolve(NONE), begin: () => NONE, look: () => Promise.resolve(NONE) },
  refused: (variables) => Promise.resolve(new Set(variables.keys())),
  planned: () => undefined,
};

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
  const theirs = instructionsOrNames(project, { trusted: false, room: bytesLeftBeside(yours) });
  const instructions = [yours, theirs, added].filter((text) => text !== "").join("\n\n");
  return {
    text: systemPrompt({ workspace, top, mode, domains, scripts, instructions }),
    shown: new Set(project.map(({ path }) => path)),
    room: bytesLeftBeside(instructions),
  };
}

const bytesLeftBeside = (rendered: string): number =>
  Math.max(0, MAX_INSTRUCTION_BYTES - Buffer.byteLength(rendered));

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
    filesIn(folder, { mark: "../".repeat(length - at), links: "refuse" }),
  );
  return (await Promise.all([...folders, filesIn(workspace, { mark: "", links: "refuse" })])).flat();
}

const OWN_MARK = "(the user's own) ";

/** Where other agents keep their user's global instructions. */
const OTHER_AGENTS: readonly (readonly [folder: string, name: string])[] = [
  [".claude", "CLAUDE.md"],
  [".codex", "AGENTS.md"],
];

/**
 * The user's own instructions, for every workspace: those of harness, or else those written for other agents. Links
 * count here: many people keep such files elsewhere.
 */
async function ownInstructions({ places }: Host): Promise<readonly FoundInstructions[]> {
  const [settings] = places.configFiles;
  const own = await filesIn(path.dirname(settings), { mark: OWN_MARK, links: "follow" });
  if (own.length > 0) return own;
  const others = await Promise.all(
    OTHER_AGENTS.map(([folder, name]) =>
      filesIn(path.join(places.home, folder), {
        mark: `${OWN_MARK}~/${folder}/`,
        links: "follow",
        names: [name],
      }),
    ),
  );
  const texts = new Set<string>();
  return others.flat().filter(({ text }) => !texts.has(text) && texts.add(text));
}

interface Reading {
  readonly mark: string;
  readonly links: Links;
  readonly names?: readonly string[];
}

async function filesIn(folder: string, how: Reading): Promise<readonly FoundInstructions[]> {
  const { mark, links, names = NAMES } = how;
  const found = await Promise.all(
    names.map(async (name) => ({ name, bytes: await headOf(path.join(folder, name), links) })),
  );
  return found.flatMap(({ name, bytes }) => {
    const text = new TextDecoder().decode(bytes);
    if (text.trim() === "") return [];
    const file = path.join(folder, name);
    return [{ path: `${mark}${name}`, file, text, cut: bytes.length >= MAX_FILE_BYTES }];
  });
}

async function headOf(file: string, links: Links): Promise<Buffer> {
  try {
    return await readRegularHead(file, { links, max: MAX_FILE_BYTES });
  } catch {
    // An unreadable file gives no instructions; the model may still find it in the box.
    return Buffer.alloc(0);
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
    const facts = await gatherFacts(opened, signal);
    const instructions = facts.instructions.filter(({ path }) => !shown.has(path));
    return briefing({ ...facts, instructions }, { trusted: false, room });
  });
  // The briefing describes the start, so it must not see what a first call writes.
  box.holdFor(gathered);
  gathered.catch(() => undefined);
  return async () => {
    if (!box.isUsed) return undefined;
    const text = await gathered.catch(() => "");
    return text === "" || isInHistory(text, history) ? undefined : text;
  };
}

/** The first line of a briefing is the same, whatever the workspace is like. */
function isInHistory(text: string, { messages }: History): boolean {
  const [head = ""] = text.split("\n", 1);
  return messages.some((message) => message.role !== "assistant" && message.text.includes(head));
}

export interface RunIndexParts {
  readonly host: Host;
  /** The current settings: in a chat they change. */
  readonly settings: () => Settings;
  readonly origins: Readonly<Record<string, string>>;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly session: string;
  /** The run's own box, for files that only this box shows. */
  readonly box: () => Promise<Box>;
}

export type RunIndex = Index & AsyncDisposable;

/** The search of a run. Nothing is loaded, opened or made before the first search. */
export function runIndex(parts: RunIndexParts): RunIndex {
  const once: { answering?: Promise<RunIndex> } = {};
  const open = async (): Promise<RunIndex> =>
    (await import("../project/search-of-run.ts")).runAnswering(parts);
  return {
    search: async (query, limit, signal) => (await (once.answering ??= open())).search(query, limit, signal),
    [Symbol.asyncDispose]: async () => {
      await (await once.answering?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}
