import Docker from "dockerode";

/** The parts of a request of the engine's client that matter here. */
interface Request {
  readonly path: string;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Content that is sent as a stream. */
  readonly file?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
}

type Answer = (failure: unknown, data: unknown) => void;

interface Modem {
  dial: (request: Request, answer: Answer) => void;
}

/** An engine's client that limits every wait and sends the content of a create request only once. */
export function engineClient(options: Docker.DockerOptions, patience: Patience): Docker {
  const api = new Docker(options);
  const modem = api.modem as Modem;
  const dial = modem.dial.bind(modem);
  modem.dial = (request, answer) => {
    const wait = patience.begin(isLong(request));
    const { abortSignal: own } = request;
    const abortSignal = own === undefined ? wait.signal : AbortSignal.any([own, wait.signal]);
    dial({ ...sentOnce(request), abortSignal }, (failure, data) => {
      wait.end(wait.signal.aborted);
      answer(wait.signal.aborted ? wait.signal.reason : failure, data);
    });
  };
  return api;
}

/** Requests that end with a container, a build, a pull or an upload; their callers watch them. */
const isLong = ({ path, file }: Request): boolean =>
  file !== undefined || /^\/(?:containers\/[^/?]+\/wait|build|images\/(?:create|load)|commit)\b/.test(path);

/**
 * The library also puts the body's fields into the address, the seccomp profile included. It also puts the options of
 * an attach request into a body, which Podman takes for input of the container.
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
  /** For an engine that has already let a wait run out, or if somebody wants an end. */
  readonly hurriedMs: number;
}

const BOUNDS: Bounds = { answerMs: 30_000, hurriedMs: 5000 };

interface Wait {
  readonly signal: AbortSignal;
  /** `silent`: the wait was given up. */
  readonly end: (silent: boolean) => void;
}

/** How long an engine may take to answer: a stopped process keeps a socket open for ever. */
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

  /** Once the signal fires, all pending and future requests to the engine end soon. */
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
