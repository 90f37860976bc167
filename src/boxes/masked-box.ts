import type { SecretBinding } from "../core/network.ts";
import type {
  ExecRequest,
  ExecResult,
  FileContent,
  FileResult,
  Job,
  KeptOutput,
  OwnedBox,
  SearchResult,
} from "../core/ports.ts";
import { type SecretMasks, secretMasks } from "../core/secrets.ts";

/**
 * The box, with the values of secrets masked in all its output: an answer from a server may contain them, although no
 * command ever had them.
 */
export function maskedBox(box: OwnedBox, secrets: readonly SecretBinding[]): OwnedBox {
  if (secrets.length === 0) return box;
  const masks = secretMasks(secrets);
  const masked: Pick<OwnedBox, "exec" | "start" | "read" | "search"> = {
    exec: async (request, signal) => {
      const { request: forwarded, end } = maskedRequest(request, masks);
      const result = await box.exec(forwarded, signal);
      await end();
      return maskedResult(result, masks);
    },
    start: (request) => {
      const { request: forwarded, end } = maskedRequest(request, masks);
      const job = maskedJob(box.start(forwarded), masks);
      return { ...job, result: job.result.then((result) => end().then(() => result)) };
    },
    read: async (path, range) => maskedRead(await box.read(path, range), masks),
    search: async (request) => maskedSearch(await box.search(request), masks),
  };
  const kept =
    box.kept && new Map([...box.kept].map(([name, job]) => [name, { ...job, ...maskedJob(job, masks) }]));
  return { ...box, ...masked, ...(kept === undefined ? {} : { kept }) };
}

/** Masks each stream separately, in the order of its bytes. */
function maskedRequest(
  request: ExecRequest,
  masks: SecretMasks,
): { readonly request: ExecRequest; readonly end: () => Promise<void> } {
  const { onOutput } = request;
  if (onOutput === undefined) return { request, end: () => Promise.resolve() };
  const streams = { stdout: masks.stream(), stderr: masks.stream() };
  return {
    request: {
      ...request,
      onOutput: async (stream, bytes) => {
        const clean = streams[stream].take(bytes);
        if (clean.length > 0) await onOutput(stream, clean);
      },
    },
    end: async () => {
      for (const stream of ["stdout", "stderr"] as const) {
        const rest = streams[stream].end();
        if (rest.length > 0) await onOutput(stream, rest);
      }
    },
  };
}

const maskedResult = (result: ExecResult, masks: SecretMasks): ExecResult => ({
  ...result,
  stdout: maskedOutput(result.stdout, masks),
  stderr: maskedOutput(result.stderr, masks),
});

/** A value may span the two parts, with or without the bytes that were lost between them. */
function maskedOutput({ head, tail, total, lost }: KeptOutput, { mask }: SecretMasks): KeptOutput {
  if (lost > 0)
    return { head: mask(head, { behind: true }), tail: mask(tail, { before: true }), total, lost };
  const whole = mask(Buffer.concat([head, tail]));
  return { head: whole.subarray(0, head.length), tail: whole.subarray(head.length), total, lost };
}

function maskedJob(job: Job, masks: SecretMasks): Job {
  const { mask } = masks;
  return {
    ...job,
    result: job.result.then((result) => maskedResult(result, masks)),
    output: () => {
      const { stdout, stderr } = job.output();
      return { stdout: mask(stdout, { behind: true }), stderr: mask(stderr, { behind: true }) };
    },
  };
}

const maskedRead = (result: FileResult<FileContent>, { mask }: SecretMasks): FileResult<FileContent> =>
  result.kind === "ok"
    ? { kind: "ok", value: { ...result.value, content: mask(result.value.content, UNKNOWN_AROUND) } }
    : result;

/** The text around a part of a file is unknown. */
const UNKNOWN_AROUND = { before: true, behind: true } as const;

function maskedSearch(result: FileResult<SearchResult>, { mask }: SecretMasks): FileResult<SearchResult> {
  if (result.kind !== "ok") return result;
  const text = (line: string): string => Buffer.from(mask(Buffer.from(line), UNKNOWN_AROUND)).toString();
  const lines = result.value.lines.map((line) => ({ ...line, text: text(line.text) }));
  return { kind: "ok", value: { ...result.value, lines } };
}
