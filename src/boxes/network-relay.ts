import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { Connection } from "../core/network.ts";
import { BOX_HOME, type GrantedNetwork } from "../core/ports.ts";
import { RelayStreams } from "./relay-streams.ts";
import { KILL, type RunnerClient } from "./runner-client.ts";
import { nameOfErrno, type RunnerExit } from "./runner-command.ts";
import { writeFileIn } from "./runner-files.ts";

/** The folder in a box that holds the socket of its proxy, its certificates and the settings of its tools. */
export const NETWORK_FOLDER = "/run/harness";

/** The proxy's socket in that folder. */
export const EGRESS_SOCKET = "egress.sock";

/** The user's cargo settings in that folder, copied to where the box's cargo looks. */
export const CARGO_FILE = "cargo.toml";

/** Network access through this machine, for a box that cannot mount the network's folder. */
export interface NearNetwork extends GrantedNetwork {
  /** The files for the box. */
  readonly folder: string;
  readonly env: () => Readonly<Record<string, string>>;
  /** A connection to the proxy; either half may end first. */
  readonly connect: () => Duplex;
}

interface RelayParts {
  readonly client: RunnerClient;
  readonly network: NearNetwork;
  readonly onWarning: (text: string) => void;
}

export interface RelayedNetwork extends Omit<NearNetwork, "folder" | "connect"> {
  /** Ends all connections; nothing is reported about that. */
  readonly leave: () => void;
  /** Also ends the relay program: no program of the harness may run in a box that is to be held. */
  readonly end: () => Promise<void>;
}

/**
 * The network in the box. Our peer is a process in the box: whatever it sends, it gains only what any command has that
 * connects to the proxy's socket. Before something is granted, nothing of the network is in the box.
 */
export async function relayNetwork(relaying: RelayParts): Promise<RelayedNetwork> {
  const { network } = relaying;
  const relay = new Relay(relaying);
  if (Object.keys(network.env()).length > 0) await relay.bringUp();
  return {
    env: network.env,
    connections: () => [...network.connections(), ...relay.outageReport()],
    grant: async (grants, variables, files) => {
      const withdraw = await network.grant(grants, variables, files);
      try {
        await relay.bringUp();
        return withdraw;
      } catch (thrown) {
        withdraw();
        throw thrown;
      }
    },
    leave: () => relay.leave(),
    end: () => relay.end(),
  };
}

const RELAY = "/usr/local/lib/harness/relay";
/** The pause between two starts of a short-lived relay. A command may end the relay, like anything else in its box. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 2000;
const LIVED_MS = 10_000;
/** The relay is restarted as fast as possible; a longer outage is reported. */
const OUTAGE_MS = 1000;
const READY_MS = 15_000;
const MAX_RETRIES = 3;

/** How one life of the relay program ended. */
interface RelayEnd {
  readonly why: string;
  /** The relay is not restarted. */
  readonly isLast: boolean;
}

interface RelayRun {
  readonly streams: RelayStreams;
  readonly ended: Promise<RelayEnd>;
  readonly kill: () => void;
}

const SILENT_END: RelayEnd = { why: "the relay program did not answer in time", isLast: true };

class Relay {
  readonly #parts: RelayParts;
  /** The files that the box has, each with its version. */
  readonly #written = new Map<string, string>();
  #beginning: Promise<void> | undefined;
  #current: RelayRun | undefined;
  #outageSince: number | undefined;
  #lost: string | undefined;
  #isLeft = false;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  /** Makes sure that the box has the current files and a running relay. */
  async bringUp(): Promise<void> {
    if (this.#lost !== undefined) throw lostError(this.#lost);
    await this.#write();
    this.#beginning ??= this.#begin();
    await this.#beginning;
  }

  /** While the way out is missing, commands that fail get this report. */
  outageReport(): readonly Connection[] {
    const isAway = this.#outageSince !== undefined && performance.now() - this.#outageSince > OUTAGE_MS;
    const why =
      this.#lost ?? (isAway ? "the relay program in the box ended and is being restarted" : undefined);
    if (why === undefined) return [];
    const nothing = { host: "", port: 0, method: null, up: 0, down: 0 };
    return [{ ...nothing, at: Date.now(), verdict: "denied", rule: "relay", reason: lostWords(why) }];
  }

  leave(): void {
    this.#isLeft = true;
    this.#current?.streams.close();
  }

  async end(): Promise<void> {
    this.leave();
    this.#current?.kill();
    await this.#current?.ended;
  }

  async #write(): Promise<void> {
    const { client, network } = this.#parts;
    try {
      for (const name of await filesBelow(network.folder)) await this.#put(name);
    } catch (thrown) {
      throw (
        client.lost ??
        lostError(`the relay's files cannot be written into the box: ${reasonOf(thrown)}`, thrown)
      );
    }
  }

  async #put(name: string): Promise<void> {
    const { client, network, onWarning } = this.#parts;
    const file = path.join(network.folder, name);
    const { size, mtimeMs, ino } = await stat(file);
    const version = `${ino}:${size}:${mtimeMs}`;
    if (this.#written.get(name) === version) return;
    const content = await readFile(file);
    await writeFileIn(client, path.posix.join(NETWORK_FOLDER, name), content);
    if (name === CARGO_FILE) await tellCargo(client, `${BOX_HOME}/.cargo`, content, onWarning);
    this.#written.set(name, version);
  }

  async #begin(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const { streams, ended } = this.#run();
      const ready = streams.ready.then(
        () => undefined,
        () => ended,
      );
      const end = await Promise.race([ready, sleep(READY_MS, SILENT_END, { ref: false })]);
      if (end === undefined) return void this.#keepRunning(ended);
      streams.close();
      if (!end.isLast && tries < MAX_RETRIES) continue;
      this.#giveUp(end.why);
      throw lostError(end.why);
    }
  }

  /** Restarts the relay whenever it ends, until it cannot be started or trusted. */
  async #keepRunning(running: Promise<RelayEnd>): Promise<void> {
    let ended = running;
    for (let pause = 0; ;) {
      const began = performance.now();
      const { why, isLast } = await ended;
      if (this.#isLeft || this.#parts.client.lost !== undefined) return;
      if (isLast) return this.#giveUp(why);
      this.#outageSince ??= performance.now();
      await sleep(pause, undefined, { ref: false });
      if (this.#isLeft) return;
      pause =
        performance.now() - began > LIVED_MS ? 0 : Math.min(Math.max(pause * 2, MIN_PAUSE_MS), MAX_PAUSE_MS);
      const next = this.#run();
      next.streams.ready.then(
        () => (this.#outageSince = undefined),
        () => undefined,
      );
      ended = next.ended;
    }
  }

  #giveUp(why: string): void {
    if (this.#isLeft || this.#parts.client.lost !== undefined) return;
    this.#lost = why;
    this.#parts.onWarning(lostWords(why));
  }

  /** Starts one life of the relay program. */
  #run(): RelayRun {
    const { client, network } = this.#parts;
    const streams = new RelayStreams(network.connect);
    const output: { rubbish?: true } = {};
    const command = {
      words: [RELAY],
      folder: "/",
      env: {},
      timeoutMs: 0,
      head: Number.MAX_SAFE_INTEGER,
      tail: 0,
      terminal: false,
      own: true,
      input: streams.frames(),
    };
    const running = client.run(command, {
      onOutput: (stream, _, bytes) => {
        if (stream !== "stdout" || output.rubbish === true) return;
        try {
          streams.take(bytes);
        } catch {
          output.rubbish = true;
          running.signal(KILL);
        }
      },
    });
    const finished = (end: RelayEnd): RelayEnd => {
      streams.close();
      return output.rubbish === true ? { why: RUBBISH, isLast: true } : end;
    };
    const ended = running.ended.then(
      (exit) => finished(endOf(exit)),
      (thrown: unknown) => finished({ why: reasonOf(thrown), isLast: true }),
    );
    this.#current = { streams, ended, kill: () => running.signal(KILL) };
    return this.#current;
  }
}

const RUBBISH = "the box sent data that the relay program never sends";

function endOf({ errno, code, signal }: RunnerExit): RelayEnd {
  if (errno !== null)
    return {
      why: `${RELAY} cannot be started in the box (${nameOfErrno(errno)}): the image may be out of date`,
      isLast: true,
    };
  const how = code === null ? `was ended by signal ${signal ?? 0}` : `ended with ${code}`;
  return { why: `the relay program ${how}`, isLast: false };
}

const lostWords = (why: string): string => `the box cannot reach the hosts that are granted: ${why}`;

const lostError = (why: string, cause?: unknown): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    lostWords(why),
    "start again: a new box gets a connection of its own",
    cause,
  );

/** Regular files only, by their paths in the folder: neither the socket nor files that are being written. */
async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".new"))
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}

/**
 * Writes the user's replaced sources into cargo's own folder: cargo reads them from no other place that is the same in
 * every image.
 */
export async function tellCargo(
  client: RunnerClient,
  home: string,
  settings: Buffer,
  onWarning: (text: string) => void,
): Promise<void> {
  // If the cache cannot be written, everything else still works.
  await writeFileIn(client, `${home}/config.toml`, settings).catch((thrown: unknown) =>
    onWarning(`cargo in the box does not use your own sources: ${reasonOf(thrown)}`),
  );
}
