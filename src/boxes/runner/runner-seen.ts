import type { Act, Canary, Observed, SeenProcess, Touch } from "../../core/behaviour.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import { decodeFields, type FieldValue, numberIn } from "./runner-frames.ts";

/** The canaries and folders that the runner watches while a command runs (sandbox/runner/observe.h, protocol.h). */
export interface ObserveOptions {
  readonly canaries: readonly Canary[];
  /** Files below these folders are counted apart, so that they leave room in the report for files elsewhere. */
  readonly trees: readonly string[];
}

const CANARY = { file: "f", socket: "s", address: "a" } as const;

export const observeFields = ({
  canaries,
  trees,
}: ObserveOptions): readonly (readonly [string, FieldValue])[] => [
  ...trees.map((tree) => ["w", tree] as const),
  ...canaries.map(({ kind, at }) => ["c", `${CANARY[kind]}${kind === "address" ? hostOf(at) : at}`] as const),
];

/** Touching any port of an address counts. */
const hostOf = (at: string): string => at.slice(0, at.lastIndexOf(":")).replaceAll(/[[\]]/g, "");

const OBSERVATION_LEVELS = ["none", "samples", "calls"] as const;

/** Reads the pieces of one command's report, in the order they came. */
export function readSeen(pieces: readonly Buffer[], canaries: readonly Canary[]): Observed {
  const fields = pieces.flatMap(decodeFields);
  const of = (name: string): readonly Buffer[] =>
    fields.flatMap((field) => (field.name === name ? [field.bytes] : []));
  const by = OBSERVATION_LEVELS[numberIn(fields, "b")] ?? "none";
  const touch = of("t")[0];
  return {
    by,
    processes: of("p").map(processIn),
    acts: of("a").map(actIn),
    missed: { processes: numberIn(fields, "P"), acts: numberIn(fields, "A") },
    touched: touch === undefined ? null : touchIn(touch, canaries),
    unseen: [...UNSEEN[by], ...(numberIn(fields, "h") === 1 ? [HIDDEN] : [])],
  };
}

const milliseconds = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at)) / 1000;

const processIn = (bytes: Buffer): SeenProcess => ({
  pid: bytes.readUInt32LE(0),
  parent: bytes.readUInt32LE(4),
  at: milliseconds(bytes, 8),
  words: textOfBytes(bytes.subarray(16)).split("\0"),
});

type FileAct = "read" | "write" | "make" | "remove" | "mode" | "run";
type SocketAct = "connect" | "listen" | "send";

const FILE_ACTS: Readonly<Record<string, FileAct>> = {
  r: "read",
  w: "write",
  m: "make",
  d: "remove",
  o: "mode",
  x: "run",
};
const SOCKET_ACTS: Readonly<Record<string, SocketAct>> = { c: "connect", l: "listen", s: "send" };
const FAMILIES: Readonly<Record<string, "ip" | "unix">> = { i: "ip", u: "unix" };
const NO_PORT = 0xffff_ffff;
const ACT_HEAD = 17;

function actIn(bytes: Buffer): Act {
  const letter = bytes.toString("latin1", 0, 1);
  const head = {
    pid: bytes.readUInt32LE(1),
    times: bytes.readUInt32LE(5),
    at: milliseconds(bytes, 9),
  };
  const body = bytes.subarray(ACT_HEAD);
  const file = FILE_ACTS[letter];
  if (file !== undefined) return { ...head, kind: file, path: textOfBytes(body) };
  if (letter === "n") return { ...head, kind: "name", name: textOfBytes(body) };
  const socket = SOCKET_ACTS[letter];
  if (socket === undefined) {
    const [name = "", detail = ""] = textOfBytes(body).split("\0");
    return { ...head, kind: "call", name, detail };
  }
  const port = body.readUInt32LE(1);
  return {
    ...head,
    kind: socket,
    family: FAMILIES[body.toString("latin1", 0, 1)] ?? "other",
    address: textOfBytes(body.subarray(5)),
    port: port === NO_PORT ? null : port,
  };
}

const touchIn = (bytes: Buffer, canaries: readonly Canary[]): Touch => ({
  canary: canaries[bytes.readUInt32LE(0)]?.name ?? "",
  pid: bytes.readUInt32LE(4),
  at: milliseconds(bytes, 8),
  path: textOfBytes(bytes.subarray(16)),
});

const UNSEEN: Readonly<Record<Observed["by"], readonly string[]>> = {
  calls: [
    "calls that the box refuses outright (mount, ptrace, namespaces, kernel modules, raw sockets, set-id modes): they are not reported",
    "lookups: names that are listed, files that are searched for, links that are read",
    "reads of the system's own programs and libraries",
    "what a process does through files and sockets that it already has open",
    "a path that a program changes between the check and the use; canaries are guarded against that",
  ],
  samples: [
    "processes that lived for less than a few hundredths of a second",
    "files, sockets and calls: this machine reports none; canaries that are opened are reported",
  ],
  none: ["everything: this machine does not report what commands do"],
};

const HIDDEN = "what processes did after they barred other processes from inspecting them";
