import type { AgentEvent } from "../../src/core/events.ts";

/** Each tool of a run as a way to act: the call, its effect, and where it happens. */

/** What is left after a run. */
export interface AfterRun {
  readonly result: string;
  /** What the box's folder contains at the end; empty if it could not be read. */
  readonly look: string;
  readonly events: readonly AgentEvent[];
  /** Whether the file on this machine exists. */
  readonly besides: boolean;
  /** Requests that the server on this machine received. */
  readonly heard: readonly string[];
}

export interface ToolWay {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly done: (seen: AfterRun) => boolean;
  /** Why the tool does not act in the box; absent if it does. */
  readonly outside?: string;
  /** The policy's verdict if no user's rule applies. */
  readonly contained?: boolean;
  /** The tool asks a host, and its run has grants; it needs no box. */
  readonly reaches?: true;
  /** Who provides the tool: a name in `OPENERS`; absent if it is built in. */
  readonly by?: string;
}

/** A folder of the box that this machine does not have. */
export interface ToolTargets {
  readonly folder: string;
  /** A file of this machine that no box has. */
  readonly beside: string;
  /** A server on this machine. */
  readonly url: string;
}

const NEEDLE = "only-the-box-has-this";
export const SEED = (folder: string): string =>
  `mkdir -p ${folder}; printf '${NEEDLE}\\n' > ${folder}/seed.txt; seq 20000`;
export const LOOK = (folder: string): string => `cd ${folder} && grep . * && cd -`;

const SESSION = "it works on what the session remembers, and on no file";
const HOST = "the box has no network: the harness asks, by the rules of egress";

const resultHas =
  (text: string) =>
  ({ result }: AfterRun) =>
    result.includes(text);
const lookHas =
  (text: string) =>
  ({ look }: AfterRun) =>
    look.includes(text);

/** The tools in the order in which one run calls them. */
export const toolWays = ({ folder, beside, url }: ToolTargets): readonly ToolWay[] => [
  { tool: "read_file", args: { path: `${folder}/seed.txt` }, done: resultHas(NEEDLE) },
  { tool: "list_dir", args: { path: folder }, done: resultHas("seed.txt") },
  { tool: "glob", args: { pattern: "*.txt", path: folder }, done: resultHas("seed.txt") },
  { tool: "grep", args: { pattern: "box-has", path: folder }, done: resultHas(NEEDLE) },
  {
    tool: "edit_file",
    args: { path: `${folder}/seed.txt`, old: NEEDLE, new: `${NEEDLE} edited-it` },
    done: lookHas("edited-it"),
  },
  {
    tool: "write_file",
    args: { path: `${folder}/written.txt`, content: "wrote-it\n" },
    done: lookHas("wrote-it"),
  },
  {
    tool: "apply_patch",
    args: { patch: `*** Begin Patch\n*** Add File: ${folder}/patched.txt\n+patched-it\n*** End Patch\n` },
    done: lookHas("patched-it"),
  },
  { tool: "show_full", args: { id: "o1", offset: 40_000 }, done: resultHas("\n8999\n"), outside: SESSION },
  {
    tool: "note",
    args: { title: "a note", body: "kept-it" },
    done: resultHas("noted: a note"),
    outside: SESSION,
  },
  { tool: "notes", args: { query: "kept-it" }, done: resultHas("kept-it"), outside: SESSION },
  {
    tool: "plan",
    args: { steps: ["[ ] look around"] },
    done: ({ events }) => events.some(({ type }) => type === "plan"),
    outside: SESSION,
  },
  { tool: "semantic_search", args: { query: "the answer" }, done: resultHas("code.ts"), outside: SESSION },
  {
    tool: "task",
    args: { prompt: "CHILD by name" },
    done: ({ events }) => events.some(({ type }) => type === "task"),
    outside: "it starts a subagent, whose own calls are judged one by one",
  },
  {
    tool: "skill",
    args: { name: "tidy" },
    done: resultHas("the-skill-says"),
    outside: SESSION,
    by: "skills",
  },
  {
    tool: "files__write",
    args: { path: `${folder}/served.txt`, text: "served-it" },
    done: lookHas("served-it"),
    by: "mcp",
  },
  { tool: "stamp", args: {}, done: lookHas("stamped-it"), by: "configuredTools" },
  {
    tool: "mcp_resource",
    args: { server: "files", uri: "mem:a" },
    done: resultHas("the resource"),
    by: "mcp",
  },
  { tool: "mcp_prompt", args: { server: "files", name: "p" }, done: resultHas("say so"), by: "mcp" },
  {
    tool: "near__write",
    args: { path: beside, text: "near-it" },
    done: ({ besides }) => besides,
    outside: "the user says sandbox: false of it",
    contained: false,
    by: "mcp",
  },
  {
    tool: "far__echo",
    args: { text: "far-it" },
    done: ({ heard }) => heard.includes("echo"),
    outside: HOST,
    reaches: true,
    by: "mcp",
  },
  {
    tool: "web_fetch",
    args: { url: `${url}/page` },
    done: ({ heard }) => heard.includes("/page"),
    outside: HOST,
    reaches: true,
    by: "openWebTools",
  },
  {
    tool: "web_search",
    args: { query: "where is it" },
    done: ({ heard }) => heard.some((each) => each.startsWith("/search")),
    outside: HOST,
    reaches: true,
    by: "openWebTools",
  },
];

/** A tool that the user added. */
export const STAMP = (folder: string) => ({
  stamp: { description: "Stamps.", command: `echo stamped-it > ${folder}/stamped.txt` },
});

/** Tools without a row, with the reason. */
export const WITHOUT_ROW: Readonly<Record<string, string>> = {
  bash: "its commands are tried by what they say, and by its name alone, below",
  ask_user: "in a chat alone, and it does nothing but ask the person there",
};
