import type { CommandCatalogue, KnownCommand, KnownFlag } from "../src/cli/completion-answer.ts";

interface About {
  readonly version: string;
  readonly description: string;
}

/** The manual page of `harness`, built from the descriptions of the commands. */
export function manPage({ version, description }: About, { commands, topics }: CommandCatalogue): string {
  const shown = Object.entries(commands)
    .filter(([, { hidden }]) => hidden !== true)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const lines = [
    `.TH HARNESS 1 "" ${quoted(`harness ${version}`)} "User Commands"`,
    ".SH NAME",
    `harness \\- ${plain(description.charAt(0).toLowerCase() + description.slice(1))}`,
    ".SH SYNOPSIS",
    ".B harness",
    "[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]",
    ".SH DESCRIPTION",
    plain(
      `Without a command, harness starts a chat. harness COMMAND --help shows the same text about one command as this page.`,
    ),
    ...Object.entries(topics).flatMap(([name, topic]) => item(`harness ${name}`, topic.description)),
    ".SH COMMANDS",
    ...shown.flatMap(([id, command]) => section(id.replaceAll(":", " "), command)),
    ".SH EXIT STATUS",
    ...EXITS.flatMap(([code, meaning]) => item(code, meaning)),
    ".SH FILES",
    ...FILES.flatMap(([file, meaning]) => item(file, meaning)),
    ".SH ENVIRONMENT",
    ...VARIABLES.flatMap(([name, meaning]) => item(name, meaning)),
  ];
  return `${lines.join("\n")}\n`;
}

function section(
  name: string,
  { summary = "", description, usage, args, flags, examples = [] }: KnownCommand,
) {
  const shown = Object.entries(flags).filter(([, { hidden }]) => hidden !== true);
  const words = Object.entries(args).map(([arg, { required }]) =>
    required === true ? arg.toUpperCase() : `[${arg.toUpperCase()}]`,
  );
  return [
    `.SS ${quoted(`harness ${usage ?? [name, ...words, "[OPTIONS]"].join(" ")}`)}`,
    plain(summary),
    ...(description === undefined ? [] : [".PP", plain(description)]),
    ...Object.entries(args).flatMap(([arg, about]) => item(arg.toUpperCase(), about.description ?? "")),
    ...shown.flatMap(([flag, about]) => item(typedFlag(flag, about), flagText(about))),
    ".PP",
    "Examples:",
    ".nf",
    ...examples.map((example) => `  ${escaped(example)}`),
    ".fi",
  ];
}

const typedFlag = (name: string, { char, type, helpValue }: KnownFlag): string =>
  `${char === undefined ? "" : `-${char}, `}--${name}${type === "option" ? ` ${helpValue ?? "VALUE"}` : ""}`;

const flagText = ({ description = "", options }: KnownFlag): string =>
  options === undefined ? description : `${description}: ${options.join(", ")}`;

const item = (head: string, text: string): readonly string[] => [".TP", `.B ${quoted(head)}`, plain(text)];

/** Escapes backslashes and dashes, so that both appear as typed. */
const escaped = (text: string): string => text.replaceAll("\\", "\\e").replaceAll("-", "\\-");

/** Puts text on one line that no first character turns into a roff request. */
const plain = (text: string): string => `\\&${escaped(text.replaceAll(/\s+/g, " "))}`;

const quoted = (text: string): string => `"${escaped(text).replaceAll('"', "\\(dq")}"`;

const EXITS = [
  ["0", "done"],
  ["1", "failed"],
  ["2", "usage or settings"],
  ["3", "budget spent"],
  ["4", "refused"],
  ["5", "model unreachable or broken"],
  ["6", "sandbox unavailable"],
  ["7", "parked for approval"],
  ["10, 20", "verdicts ask and deny of harness policy"],
  ["129, 130, 143", "ended by SIGHUP, Ctrl-C, SIGTERM"],
] as const;

const FILES = [
  ["~/.config/harness", "your settings"],
  ["~/.local/state/harness", "sessions, audits and logs"],
  ["~/.cache/harness", "files that you can delete at any time"],
  [".harness", "what a project brings; it counts once you have trusted it with harness trust"],
] as const;

const VARIABLES = [
  ["HARNESS_<KEY>", "a setting from harness config list, in capitals"],
  ["OLLAMA_HOST, OPENAI_API_KEY, ANTHROPIC_API_KEY", "addresses of model servers, and API keys"],
  ["DOCKER_HOST", "the engine that runs the boxes"],
  ["NO_COLOR", "no colours"],
] as const;
