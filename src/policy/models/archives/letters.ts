import type { Arg, Found, Use } from "../model.ts";

const LISTS = new Set(["l", "lb", "lt", "la", "v", "vb", "vt", "t", "p"]);
const TAKES_OUT = new Set(["x", "e"]);
const PLAIN = /^-(?:slt|ba|bd|bb[0-3]|p\w*|t\w+|y|r-?|spd|sccUTF-8|inul|idq|c-)$/;
const OUT = /^-o./;

/** 7z and rar: a command word, then options and operands. `@x` takes names from a file. */
export function letterCommands(use: Use): readonly Found[] {
  const [command, ...rest] = use.args;
  if (command === undefined) return [];
  if (command.kind !== "literal") return [use.doubt("word.dynamic", command)];
  const out = rest.find(({ value }) => OUT.test(value) && TAKES_OUT.has(command.value));
  const options = rest.filter((arg) => arg.value.startsWith("-") && arg !== out);
  const [archive, ...names] = rest.filter(({ value }) => !value.startsWith("-"));
  return [
    ...options
      .filter((arg) => arg.kind !== "literal" || !PLAIN.test(arg.value))
      .map((arg) => use.doubt("option.unknown", arg)),
    ...rest
      .filter((arg) => arg.value.startsWith("@") || arg.loose === true)
      .map((arg) => use.doubt("operand.unknown", arg)),
    ...(archive === undefined ? [] : archiveEffects(use, command.value, archive)),
    ...movedEffects(use, command.value, { out, names }),
  ];
}

function archiveEffects(use: Use, command: string, archive: Arg): readonly Found[] {
  const { span } = archive;
  const path = use.place(archive);
  return [{ kind: LISTS.has(command) || TAKES_OUT.has(command) ? "read" : "write", path, span }];
}

interface Moved {
  readonly out: Arg | undefined;
  readonly names: readonly Arg[];
}

function movedEffects(use: Use, command: string, { out, names }: Moved): readonly Found[] {
  if (LISTS.has(command)) return [];
  if (!TAKES_OUT.has(command))
    return names.map((arg) => ({ kind: "read", path: use.place(arg), span: arg.span }));
  const path = out === undefined ? use.folder : use.place({ ...out, value: out.value.slice("-o".length) });
  // The last name of rar may be the folder to write into.
  const last = names.filter(({ value }) => value.endsWith("/"));
  return [
    { kind: "write", path },
    ...last.map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span })),
  ];
}

const AR_READS = /^-?[tp][OvVPT]*$/;
const AR_TAKES_OUT = /^-?x[ovVPT]*$/;

/** `ar`: letters, then the archive. Any option behind them may load a plug-in. */
export function arEffects(use: Use): readonly Found[] {
  const [letters, archive, ...members] = use.args;
  if (letters === undefined) return [];
  // A script on stdin says what is written.
  if (letters.value.includes("M")) return [use.doubt("language.unknown", letters)];
  if (archive === undefined) return [];
  const doubts = use.args
    .filter((arg) => arg.value.startsWith("--") || arg.value.startsWith("@") || arg.kind === "dynamic")
    .map((arg) => use.doubt("option.unknown", arg));
  const path = use.place(archive);
  const { span } = archive;
  if (AR_READS.test(letters.value)) return [...doubts, { kind: "read", path, span }];
  if (AR_TAKES_OUT.test(letters.value))
    return [...doubts, { kind: "read", path, span }, { kind: "write", path: use.folder }];
  return [
    ...doubts,
    { kind: "write", path, span },
    ...members.map((arg): Found => ({ kind: "read", path: use.place(arg), span: arg.span })),
  ];
}
