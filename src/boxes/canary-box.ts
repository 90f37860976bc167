import type { Canary, Observed, SeenProcess } from "../core/behaviour.ts";
import type { ExecRequest, ExecResult, Job, OwnedBox } from "../core/ports.ts";
import { CANARY_ENV, METADATA, METADATA_NAMES } from "./canaries.ts";

/** A touch of a canary, with what led there. */
export interface CanaryReport {
  readonly canary: string;
  /** Where the canary was touched: a path, an address, or `output` if its content was printed. */
  readonly path: string;
  /** The words of the command. */
  readonly command: readonly string[];
  /** The programs that led to the touch, the outermost first; empty if unknown. */
  readonly by: readonly (readonly string[])[];
}

/**
 * The box, with every command observed for touches of these canaries. The runner ends a command at the first touch of a
 * file, a socket or an address; names asked of the proxy and printed contents are reported when the command ends.
 */
export function canaryBox(
  box: OwnedBox,
  canaries: readonly Canary[],
  onTouch: (report: CanaryReport) => void,
): OwnedBox {
  const withTouch = (request: ExecRequest, result: ExecResult): ExecResult => {
    const report = reportOf(request, result, canaries);
    if (report === undefined) return result;
    onTouch(report);
    const reason = `it touched a canary: ${report.canary} (${report.path})`;
    return { ...result, cause: "canary", reason };
  };
  const watched = (request: ExecRequest): ExecRequest => ({
    ...request,
    env: { ...CANARY_ENV, ...request.env },
    observe: { canaries },
  });
  const followed = (job: Job, request: ExecRequest): Job["result"] => {
    const result = job.result.then((ended) => withTouch(request, ended));
    // The job's failure belongs to whoever awaits the job. This promise only reports a touch, even if nobody awaits it.
    result.catch(() => undefined);
    return result;
  };
  const kept =
    box.kept &&
    new Map(
      [...box.kept].map(([name, job]) => {
        const request = { words: [name], timeoutMs: 0, keep: { head: 0, tail: 0 } };
        return [name, { ...job, result: followed(job, request) }] as const;
      }),
    );
  return {
    ...box,
    exec: async (request, signal) => withTouch(request, await box.exec(watched(request), signal)),
    start: (request) => {
      const job = box.start(watched(request));
      return { ...job, result: followed(job, request) };
    },
    ...(kept === undefined ? {} : { kept }),
  };
}

function reportOf(
  { words }: ExecRequest,
  { observed, stdout, stderr, blocked_connections: refused = [] }: ExecResult,
  canaries: readonly Canary[],
): CanaryReport | undefined {
  const touched = observed?.touched ?? null;
  if (observed !== undefined && touched !== null) {
    const { canary, path } = touched;
    return { canary: canary === "" ? path : canary, path, command: words, by: wayTo(observed, touched.pid) };
  }
  const refusedConnection = refused.find(({ host }) => METADATA_NAMES.has(host) || isAddress(host, canaries));
  if (refusedConnection !== undefined)
    return { canary: METADATA, path: refusedConnection.host, command: words, by: [] };
  const [printed] = canariesIn([stdout.head, stdout.tail, stderr.head, stderr.tail], canaries);
  return printed && { canary: printed.name, path: "output", command: words, by: [] };
}

const isAddress = (host: string, canaries: readonly Canary[]): boolean =>
  canaries.some(({ kind, at }) => kind === "address" && at.slice(0, at.lastIndexOf(":")) === host);

/** The processes from the command itself down to this process. */
function wayTo({ processes }: Observed, pid: number): readonly (readonly string[])[] {
  const chain: SeenProcess[] = [];
  const passed = new Set<number>();
  for (let next = pid; next !== 0 && !passed.has(next);) {
    passed.add(next);
    const found = processes.findLast((each) => each.pid === next);
    if (found === undefined) break;
    chain.unshift(found);
    next = found.parent;
  }
  return chain.map(({ words }) => words);
}

/** Recognizes the contents of canaries in other data: as plain text, in base64, in hexadecimal digits. */

/** This many matching characters in a row never occur by chance. */
const SHORTEST_TEXT = 16;

interface Sign {
  readonly canary: Canary;
  readonly texts: readonly Buffer[];
}

/** The random parts. Text that is the same in each run is shorter, or is the header of a web token. */
const marksOf = ({ content = "" }: Canary): readonly string[] =>
  (content.match(/[A-Za-z0-9+/_-]{20,}/g) ?? [])
    .flatMap((run) => (run.startsWith("eyJ") ? [] : run.split(/A{3,}/)))
    .filter((word) => word.length >= SHORTEST_MARK && /\d/.test(word) && /[A-Za-z]/.test(word));
const SHORTEST_MARK = 20;

/** A text's base64 form depends on its offset modulo three; its ends also depend on the bytes around it. */
function inBase64(text: string): readonly Buffer[] {
  return [0, 1, 2].map((shift) => {
    const whole = Buffer.from("\0".repeat(shift) + text)
      .toString("base64")
      .replace(/=+$/, "");
    return Buffer.from(whole.slice(shift === 0 ? 0 : 4, -2));
  });
}

function signsOf(canaries: readonly Canary[]): readonly Sign[] {
  return canaries.flatMap((canary) => {
    const marks = marksOf(canary);
    if (marks.length === 0) return [];
    const texts = marks
      .flatMap((mark) => [
        Buffer.from(mark),
        ...inBase64(mark),
        Buffer.from(Buffer.from(mark).toString("hex")),
      ])
      .filter(({ length }) => length >= SHORTEST_TEXT);
    return [{ canary, texts }];
  });
}

/** The canaries that occur, at least in part, in one of these contents. */
export function canariesIn(contents: readonly Uint8Array[], canaries: readonly Canary[]): readonly Canary[] {
  const found = contents.map((content) =>
    Buffer.from(content.buffer, content.byteOffset, content.byteLength),
  );
  if (found.every(({ length }) => length < SHORTEST_TEXT)) return [];
  return signsOf(canaries)
    .filter(({ texts }) => texts.some((text) => found.some((content) => content.includes(text))))
    .map(({ canary }) => canary);
}
