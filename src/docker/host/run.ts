import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface Ran {
  readonly code: number | null;
  /** The last lines it printed, on either stream. */
  readonly tail: readonly string[];
}

/** Runs a host program of our own choosing (apt, debootstrap) to its end. Never anything a repository or a model named. */
export async function runHost(
  argv: readonly [string, ...string[]],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly onLine?: (line: string) => void;
    readonly cwd?: string;
  },
): Promise<Ran> {
  const tail: string[] = [];
  const [program, ...args] = argv;
  const { env, signal, cwd } = options;
  const child = spawn(program, args, { env, signal, cwd, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve) => {
    child.once("error", (error) => {
      tail.push(error.message);
      resolve(null);
    });
    child.once("close", resolve);
  });
  const read = async (stream: NodeJS.ReadableStream): Promise<void> => {
    for await (const line of createInterface({ input: stream })) {
      if (line.trim() === "") continue;
      tail.push(line);
      if (tail.length > 20) tail.shift();
      options.onLine?.(line);
    }
  };
  const [code] = await Promise.all([ended, read(child.stdout), read(child.stderr)]);
  return { code, tail };
}
