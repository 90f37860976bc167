import assert from "node:assert/strict";
import test from "node:test";
import { textOf } from "./docs-lines.ts";

/** The tables of limits on the pages match the source. */

const COMMANDS = "src/extensions/command-files.ts";
const FOLDERS = "src/extensions/skill-folders.ts";
const BROUGHT = "src/extensions/brought.ts";
const LISTED = "src/agent/context/prompt.ts";
const FORM = "src/core/added-programs.ts";
const ANSWERS = "src/extensions/hook-programs.ts";
const VALUES = "src/extensions/program-files.ts";
const REWRITING = "src/agent/small-models.ts";
const NEXT = "src/agent/next-reply.ts";
const WEB = "src/extensions/web";
const EXTENSIONS = "src/extensions";
const SEEN = "sandbox/runner/seen.c";
const JOB = "src/kubernetes/batch-job.ts";

type Held = readonly [row: string, file: string, number: string | RegExp];

/** For each page: the beginning of a row, and the constant, or the words around the number, in a file. */
const HELD: Readonly<Record<string, readonly Held[]>> = {
  "docs/skills.md": [
    ["a `SKILL.md`", FOLDERS, "MAX_MAIN"],
    ["front matter", "src/extensions/skill-folders.ts", "MAX_CHARACTERS"],
    ["front matter", "src/extensions/skill-folders.ts", "MAX_LINES"],
    ["entries of one", FOLDERS, "MAX_FOLDERS"],
    ["files of a skill, with", FOLDERS, "MAX_FILES"],
    ["files of a skill that are copied", "src/extensions/skill-tool.ts", "MAX_COPY"],
    ["files of a skill that are copied", "src/extensions/skill-tool.ts", "PATIENCE_MS"],
    ["file of a skill that the tool", "src/extensions/skill-tool.ts", "MAX_TEXT"],
    ["a description in the prompt", LISTED, "MAX_DESCRIPTION"],
    ["all skills in the prompt", LISTED, "MAX_SKILLS_BYTES"],
    ["all skills in the prompt", LISTED, "NAMES_BYTES"],
    ["a command's file", COMMANDS, "MAX_FILE"],
    ["a command's text", COMMANDS, "MAX_SAID"],
    ["files and folders of one", COMMANDS, "MAX_FILES"],
    ["a project's skills, and", BROUGHT, "MAX_FILES"],
    ["their texts", BROUGHT, "MAX_BYTES"],
    ["a skill's files that are not text", BROUGHT, "MAX_BINARIES"],
    ["a skill's files that are not text", BROUGHT, "MAX_BYTES"],
  ],
  "docs/hooks.md": [
    ["hooks of yours", FORM, /hookForm\(\), HOOKS\)\.max\((\d+)/],
    ["a command", FORM, /line = .*\.max\((\d+)/],
    ["a command", FORM, /array\(line.*\.max\((\d+)/],
    ["`tools`", FORM, /array\(glob.*\.max\((\d+)/],
    ["`tools`", FORM, /glob = .*\{1,(\d+)\}/],
    ["`name`", FORM, /\{1,(60)\}/],
    ["`timeout`", "src/extensions/hook-chain.ts", "PATIENCE_MS"],
    ["an answer", "src/extensions/hook-chain.ts", "MAX_ANSWER"],
    ["a text of `Stop`", ANSWERS, /Stop: (\d[\d *]*),/],
    ["a text of `SessionStart`", ANSWERS, /SessionStart: (\d[\d *]*),/],
    ["a text of `PreCompact`", ANSWERS, /PreCompact: (\d[\d *]*),/],
    ["a text of `PostToolUse`", "src/agent/call-result.ts", "MAX_BYTES"],
    ["a reason", ANSWERS, "MAX_REASON"],
    ["stderr", "src/extensions/hook-programs.ts", "MAX_STDERR"],
    ["arguments that a hook replaced", "src/agent/call-result.ts", "MAX_TOLD"],
    ["a request that `Stop`", "src/extensions/hook-chain.ts", "MAX_CONTINUED"],
    ["names of values", VALUES, /NAME = .*\{1,(\d+)\}/],
    ["values that are kept", VALUES, "MAX_VALUES"],
    ["a value that is kept", VALUES, "MAX_VALUE"],
    ["all values", VALUES, "MAX_VALUES_BYTES"],
    ["a project's `hooks.json`", BROUGHT, "MAX_BYTES"],
  ],
  "docs/small-models.md": [
    ["window of a model", "src/models/model-kinds.ts", "SMALL_WINDOW"],
    ["one reply", "src/agent/model-request.ts", "SMALL_REPLY"],
    ["files parsed", "src/agent/ending/broken-syntax.ts", "MAX_FILES"],
    ["files parsed", "src/agent/ending/broken-syntax.ts", "MAX_BYTES"],
    ["request whose names", "src/agent/ending/named-in-request.ts", "MAX_CHARACTERS"],
    ["request whose names", "src/agent/ending/named-in-request.ts", "MAX_CHARACTERS"],
    ["changed files", "src/agent/ending/named-in-request.ts", "MAX_FILES"],
    ["requests for whole files", "src/agent/ending/weak-model-demands.ts", "MAX_MENDS"],
    ["file that is requested whole", NEXT, "MAX_WRITTEN_WHOLE"],
    ["file whose lines", NEXT, "MAX_SHOWN"],
    ["file whose lines", NEXT, "MAX_SPLIT_INTO_BLOCKS"],
    ["files that a held reply", "src/models/held-reply.ts", "MAX_CHOICES"],
    ["files that a held reply", "src/models/held-reply.ts", "MAX_CHOICE_BYTES"],
    ["files sent with such a request", REWRITING, "MAX_FILES_LENGTH"],
    ["files sent with such a request", REWRITING, "MAX_OUTPUT_LENGTH"],
  ],
  "docs/mcp.md": [
    ["tools of a server", `${EXTENSIONS}/tool-catalogue.ts`, "MAX_TOOLS"],
    ["their schemas", `${EXTENSIONS}/tool-catalogue.ts`, "MAX_SCHEMAS"],
    ["their schemas", `${EXTENSIONS}/plain-schema.ts`, "MAX_CHARACTERS"],
    ["their schemas", `${EXTENSIONS}/plain-schema.ts`, "MAX_NODES"],
    ["their schemas", `${EXTENSIONS}/plain-schema.ts`, "MAX_DEPTH"],
    ["a description", `${EXTENSIONS}/tool-catalogue.ts`, "MAX_DESCRIPTION"],
    ["a description", `${EXTENSIONS}/plain-schema.ts`, "MAX_TEXT_LENGTH"],
    ["a tool's name", `${EXTENSIONS}/tool-catalogue.ts`, "MAX_NAME_LENGTH"],
    ["a list that a server", `${EXTENSIONS}/mcp-client.ts`, "MAX_PAGES"],
    ["a list that a server", `${EXTENSIONS}/mcp-client.ts`, "MAX_LISTED"],
    ["a result", `${EXTENSIONS}/mcp-client.ts`, "MAX_TEXT"],
    ["a result", `${EXTENSIONS}/mcp-client.ts`, "MAX_PARTS"],
    ["a result", `${EXTENSIONS}/mcp-client.ts`, "MAX_DEPTH"],
    ["a line of a program", `${EXTENSIONS}/mcp-transports.ts`, /MAX_LINE_LENGTH = (\d+) \* MiB/],
    ["lines that are not", `${EXTENSIONS}/mcp-transports.ts`, "MAX_STRAY"],
    ["messages between", `${EXTENSIONS}/mcp-transports.ts`, /messages: (\d+)/],
    ["a body from", `${EXTENSIONS}/mcp-transports.ts`, "MAX_BODY"],
    ["stderr", `${EXTENSIONS}/mcp-transports.ts`, "LAST_ERRORS"],
  ],
  "docs/web.md": [
    ["a page", `${WEB}/web-fetch.ts`, /bytes: (\d[\d *]*),/],
    ["a page", `${WEB}/web-fetch.ts`, /withinMs: (\d[\d_]*) /],
    ["redirects", `${WEB}/web-fetch.ts`, "MAX_REDIRECTS"],
    ["HTML", `${WEB}/web-text.ts`, "WITHIN_MS"],
    ["HTML", `${WEB}/html-tree.ts`, "MAX_NODES"],
    ["HTML", `${WEB}/html-tree.ts`, "MAX_DEPTH"],
    ["what the model gets", `${WEB}/web-fetch.ts`, "MIN_LENGTH"],
    ["what the model gets", `${WEB}/web-fetch.ts`, "DEFAULT_LENGTH"],
    ["what the model gets", `${WEB}/web-fetch.ts`, "MAX_LENGTH"],
    ["an address", `${WEB}/web-text.ts`, "MAX_ADDRESS_LENGTH"],
    ["an address", `${WEB}/web-text.ts`, "MAX_QUERY_LENGTH"],
    ["a search", `${WEB}/web-search.ts`, "MAX_QUERY_LENGTH"],
    ["results", `${WEB}/web-search.ts`, "MAX_RESULTS"],
    ["results", `${WEB}/web-search.ts`, "DEFAULT_RESULTS"],
    ["domains", `${WEB}/web-search.ts`, "MAX_DOMAINS"],
    ["an answer of a search", `${WEB}/web-search.ts`, "MAX_BYTES"],
    ["an answer of a search", `${WEB}/web-search.ts`, "WITHIN_MS"],
  ],
  "docs/serving.md": [
    ["a line of input", `${EXTENSIONS}/message-lines.ts`, "MAX_MESSAGE_BYTES"],
    ["a line of input", `${EXTENSIONS}/message-lines.ts`, "MAX_DEPTH"],
    ["requests of an agent", `${EXTENSIONS}/mcp-server.ts`, "MAX_OPEN"],
    ["calls that wait", "src/app/serve-mcp.ts", "MAX_WAITING"],
    ["sessions of an editor", `${EXTENSIONS}/acp-agent.ts`, "MAX_SESSIONS"],
    ["earlier sessions", "src/app/editor-sessions.ts", "MAX_LISTED"],
    ["commands", `${EXTENSIONS}/acp-updates.ts`, "MAX_COMMANDS"],
  ],
  "docs/observation.md": [
    ["programs of a command", SEEN, /MOST_PROCESSES (\d+)/],
    ["acts in the workspace", SEEN, /ROOM_TREE\] = (\d+)/],
    ["acts in `/tmp`", SEEN, /ROOM_SCRATCH\] = (\d+)/],
    ["acts elsewhere", SEEN, /ROOM_FILES\] = (\d+)/],
    ["acts of sockets", SEEN, /ROOM_SOCKETS\] = (\d+)/],
    ["other acts", SEEN, /ROOM_CALLS\] = (\d+)/],
  ],
  "docs/kubernetes.md": [
    ["rows of a Job", JOB, "MAX_ROWS"],
    ["rows of a Job", JOB, "MAX_CHUNKS"],
    ["rows of a Job", JOB, "CHUNK_BYTES"],
    ["a row, and all", JOB, "CHUNK_BYTES"],
    ["places of the clones", "src/kubernetes/batch-trees.ts", "MAX_MOUNTS"],
    ["changes that come back", "src/kubernetes/pod-tree.ts", "MAX_BYTES"],
    ["changes that come back", "src/kubernetes/pod-tree.ts", "MAX_FILES"],
  ],
};

/** A product of whole numbers and powers, as constants of the source are written. */
const product = (text: string): number =>
  text
    .replaceAll("_", "")
    .split(/ \* /)
    .map((part) => part.split(" ** ").map(Number))
    .reduce((all, [base = Number.NaN, power = 1]) => all * base ** power, 1);

function numberIn(file: string, number: string | RegExp): number {
  const form = typeof number === "string" ? new RegExp(`\\b${number} = (\\d[\\d_ *]*);`) : number;
  return product(form.exec(textOf(file))?.[1]?.trim() ?? "");
}

/** How a page may write a number: as such, in bytes, or in seconds. */
function written(value: number): readonly string[] {
  const units = { KiB: 2 ** 10, MiB: 2 ** 20, s: 1000 };
  const said = Object.entries(units).flatMap(([unit, size]) =>
    value % size === 0 ? [`${(value / size).toLocaleString("en-US")} ${unit}`] : [],
  );
  return [value.toLocaleString("en-US"), ...said];
}

const isIn = (row: string, words: string): boolean =>
  new RegExp(`(?<![\\d,])${words}(?![\\d,]*\\d)`).test(row);

for (const [page, rows] of Object.entries(HELD))
  test(`${page} states the limits of the source`, () => {
    const lines = (textOf(page).split("\n## Limits\n")[1] ?? "").split("\n");
    for (const [begin, file, number] of rows) {
      const value = numberIn(file, number);
      assert.ok(Number.isSafeInteger(value), `${String(number)} is not in ${file}`);
      const row = lines.find((line) => line.startsWith(`| ${begin}`)) ?? "";
      assert.ok(
        written(value).some((words) => isIn(row, words)),
        `${begin}: ${file} says ${written(value).join(" or ")}, ${page} says ${row || "nothing"}`,
      );
    }
  });
