import Docker from "dockerode";

/** What the engine's client is asked to send, as far as it matters here. */
interface Request {
  readonly path: string;
  readonly options?: Readonly<Record<string, unknown>>;
  /** What is sent up as a stream. */
  readonly file?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
}

type Answer = (failure: unknown, data: unknown) => void;

interface Modem {
  dial: (request: Request, answer: Answer) => void;
}

/** An engine's client whose every wait has a bound, and that sends what is to be made once. */
export function engineClient(options: Docker.DockerOptions, patience: Patience): Docker {
  const api = new Docker(options);
  const modem = api.modem as Modem;
  const dial = modem.dial.bind(modem);
  modem.dial = (request, answer) => {
    const wait = patience.begin(isLong(request));
    const { abortSignal: own } = request;
    const abortSignal = own === undefined ? wait.signal : AbortSignal.any([own, wait.signal]);
    dial({ ...sentOnce(request), abortSignal }, (failure, data) => {
      wait.end(abortSignal.aborted);
      answer(wait.signal.aborted ? wait.signal.reason : failure, data);
    });
  };
  return api;
}

/** Ends when a container does, or with a build, a pull or an upload; their callers watch these. */
const isLong = ({ path, file }: Request): boolean =>
  file !== undefined || /^\/(?:containers\/[^/?]+\/wait|build|images\/(?:create|load)|commit)\b/.test(path);

/**
 * The library puts the body's fields into the address, too: a seccomp profile and all. What it is to be attached with it
 * puts into a body, too, which Podman takes for input of the container.
 */
function sentOnce(request: Request): Request {
  if (/^\/containers\/[^/?]+\/attach\?/.test(request.path)) return { ...request, file: Buffer.alloc(0) };
  if (request.options === undefined || !/^\/(?:containers|volumes|networks)\/create\?/.test(request.path))
    return request;
  const { name, platform, abortSignal: _, authconfig: __, ...body } = request.options;
  const query = Object.entries({ name, platform }).filter(([, value]) => value !== undefined);
  return { ...request, options: { _query: Object.fromEntries(query), _body: body } };
}

export interface Bounds {
  readonly answerMs: number;
  /** For an engine that has let a wait run out, or where somebody wants an end. */
  readonly hurriedMs: number;
}

const BOUNDS: Bounds = { answerMs: 30_000, hurriedMs: 5000 };

interface Wait {
  readonly signal: AbortSignal;
  /** Whether it was given up. */
  readonly end: (silent: boolean) => void;
}

/** How long an engine may take to answer: a stopped process holds a socket open for ever. */
export class Patience {
  readonly #bounds: Bounds;
  readonly #pending = new Set<(ms: number) => void>();
  #hurried = false;
  #silent = false;

  constructor(bounds: Bounds = BOUNDS) {
    this.#bounds = bounds;
  }

  begin(long: boolean): Wait {
    const { answerMs, hurriedMs } = this.#bounds;
    const waiting = new AbortController();
    const state: { timer?: NodeJS.Timeout } = {};
    const within = (ms: number): void => {
      clearTimeout(state.timer);
      state.timer = setTimeout(() => waiting.abort(silentFor(ms)), ms);
    };
    this.#pending.add(within);
    if (this.#hurried || (this.#silent && !long)) within(hurriedMs);
    else if (!long) within(answerMs);
    return {
      signal: waiting.signal,
      end: (silent) => {
        clearTimeout(state.timer);
        this.#pending.delete(within);
        this.#silent = silent;
      },
    };
  }

  /** Once this fires, whatever is asked and will be asked of the engine ends soon. */
  hurry(signal: AbortSignal): Disposable {
    const hurried = (): void => {
      this.#hurried = true;
      for (const within of this.#pending) within(this.#bounds.hurriedMs);
    };
    if (signal.aborted) hurried();
    signal.addEventListener("abort", hurried, { once: true });
    return { [Symbol.dispose]: () => signal.removeEventListener("abort", hurried) };
  }
}

const silentFor = (ms: number): Error => new Error(`the engine has not answered for ${ms / 1000} s`);
