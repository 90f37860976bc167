import type { ChildProcessByStdio } from "node:child_process";
import { existsSync } from "node:fs";
import { Agent } from "node:http";
import path from "node:path";
import { Duplex, type Readable, type Writable } from "node:stream";
import type { EngineAddress } from "../core/addresses.ts";
import { openHostPipe } from "../platform/host-programs.ts";

type SshPlace = Extract<EngineAddress, { readonly kind: "ssh" }>;
type Env = Readonly<Record<string, string | undefined>>;
type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Why no engine was reached by ssh, and what to type next. */
class SshFailure extends Error {
  override readonly name = "SshFailure";
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

/**
 * Connections to an engine through the system's ssh, with the user's own settings: one process for each connection that
 * is open at a time; a free one serves the next request. ssh asks nothing, neither for a password nor about a key of
 * the host.
 */
export class SshAgent extends Agent {
  readonly #place: SshPlace;
  readonly #env: Env;

  constructor(place: SshPlace, env: Env) {
    super({ keepAlive: true, maxFreeSockets: 8 });
    this.#place = place;
    this.#env = env;
  }

  override createConnection(
    _: unknown,
    done?: (failure: Error | null, socket: Duplex) => void,
  ): Duplex | null | undefined {
    void this.#hand(done ?? (() => undefined));
    return undefined;
  }

  async #hand(done: (failure: Error | null, socket: Duplex) => void): Promise<void> {
    const opened = await this.#open().catch((thrown: unknown) => thrown as Error);
    if (opened instanceof Duplex) done(null, opened);
    else done(opened, undefined as unknown as Duplex);
  }

  async #open(): Promise<Duplex> {
    const child = await openHostPipe(["ssh", ...sshWords(this.#place)], {
      env: this.#env,
      apart: repositoryAbove(process.cwd()),
    });
    if (child === null)
      throw new SshFailure("there is no program ssh here", "install openssh-client, then try again");
    return new ProgramSocket(child, this.#place);
  }
}

/** No part of an address becomes an option: its parser allows no leading dash, and `--` ends the options. */
export function sshWords({ user, host, port, path: socket }: SshPlace): readonly string[] {
  const options = [
    "BatchMode=yes",
    "ConnectTimeout=15",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "RequestTTY=no",
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "EscapeChar=none",
  ];
  return [
    "-T",
    ...options.flatMap((option) => ["-o", option]),
    ...(user === null ? [] : ["-l", user]),
    ...(port === null ? [] : ["-p", String(port)]),
    "--",
    host,
    socket === null ? "docker system dial-stdio" : `docker --host unix://${socket} system dial-stdio`,
  ];
}

/** Programs in the current repository are not the user's, although `npm run` puts them first. */
function repositoryAbove(folder: string): string {
  const parent = path.dirname(folder);
  if (existsSync(path.join(folder, ".git")) || parent === folder)
    return parent === folder ? process.cwd() : folder;
  return repositoryAbove(parent);
}

const MAX_WORDS = 4096;

/** A program's input and output as a connection; its stderr says why it ended. */
class ProgramSocket extends Duplex {
  readonly #child: Child;
  #words = "";
  #heard = false;

  constructor(child: Child, place: SshPlace) {
    super({ allowHalfOpen: true });
    this.#child = child;
    child.stdout.on("data", (chunk: Buffer) => {
      this.#heard = true;
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (this.#words.length < MAX_WORDS) this.#words += chunk.toString("utf8");
    });
    child.stdin.on("error", () => undefined);
    child.once("error", (error) => this.destroy(error));
    child.once("close", (code) => {
      if (this.#heard && code === 0) this.push(null);
      else this.destroy(sshFailure(place, code, this.#words));
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // The end of the program tells why writing failed.
    this.#child.stdin.write(chunk, encoding, (error) => done(this.#heard ? error : null));
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#child.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
    this.#child.kill();
    done(error);
  }

  /** Methods that an agent calls on a socket: a free connection does not keep this process alive. */
  ref(): this {
    return this.#hold("ref");
  }

  unref(): this {
    return this.#hold("unref");
  }

  setTimeout(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  #hold(way: "ref" | "unref"): this {
    const { stdin, stdout, stderr } = this.#child;
    for (const each of [this.#child, stdin, stdout, stderr] as readonly Partial<
      Record<typeof way, () => void>
    >[])
      each[way]?.();
    return this;
  }
}

/** Messages of ssh, or of the program that it started on the host. The first match counts. */
const ENDINGS: readonly {
  readonly pattern: RegExp;
  readonly why: string;
  readonly next: (typed: string) => string;
}[] = [
  {
    pattern: /could not resolve hostname|name or service not known|no address associated/i,
    why: "the host is unknown",
    next: (typed) => `check its name, or its Host entry in ~/.ssh/config; then try: ${typed} true`,
  },
  {
    pattern: /host key verification failed|remote host identification has changed|no \S+ host key is known/i,
    why: "the host's key is not known here, or has changed",
    next: (typed) => `compare it once by hand: ${typed} true`,
  },
  {
    pattern:
      /permission denied \(|too many authentication failures|no supported authentication|load key .*: /i,
    why: "the host refused the log-in",
    next: (typed) =>
      `make this work without a prompt (ssh-add, or IdentityFile in ~/.ssh/config): ${typed} true`,
  },
  {
    pattern:
      /docker(?:\.exe)?['"]?:? (?:command )?not found|no such file or directory.*docker|docker: not found|unknown command/i,
    why: "there is no docker there",
    next: (typed) => `install Docker there, with its command line for that user: ${typed} docker version`,
  },
  {
    pattern: /permission denied while trying to connect|dial unix .*: (?:connect: )?permission denied/i,
    why: "that user may not use the engine there",
    next: (typed) => `add the user to its group docker; then try: ${typed} docker version`,
  },
  {
    pattern:
      /cannot connect to the docker daemon|dial unix .*: (?:connect: )?(?:no such file|connection refused)/i,
    why: "the engine there is not running",
    next: (typed) => `start it there; then try: ${typed} docker version`,
  },
  {
    pattern:
      /connection (?:refused|timed out|closed|reset)|operation timed out|no route to host|network is unreachable|broken pipe/i,
    why: "cannot connect to the host",
    next: (typed) => `check that it is up and that the port is right: ${typed} true`,
  },
];

/** Explains from its messages why a program ended that should have gone on. */
export function sshFailure(place: SshPlace, code: number | null, output: string): SshFailure {
  const { user, host, port } = place;
  const typed = `ssh ${port === null ? "" : `-p ${port} `}${user === null ? "" : `${user}@`}${host}`;
  const line = lastLine(output);
  const message = line === "" ? `ssh ended with ${code ?? "a signal"}` : line;
  const known = ENDINGS.find((each) => each.pattern.test(output));
  if (known !== undefined) return new SshFailure(`${known.why}: ${message}`, known.next(typed));
  if (code === 127)
    return new SshFailure(
      `there is no docker there: ${message}`,
      `install Docker there, with its command line for that user: ${typed} docker version`,
    );
  return new SshFailure(message, `run it by hand to see what it says: ${typed} docker version`);
}

/** The line that says why; banners and warnings come before it. */
const lastLine = (output: string): string =>
  output
    .split("\n")
    .map((line) => line.trim())
    .findLast((line) => line !== "")
    ?.slice(0, 300) ?? "";
