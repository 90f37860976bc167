import type { Engine } from "../engine.ts";
import { type Outcome, runOnce } from "../oneshot.ts";

/** What every image must have; the runner itself is mounted and needs nothing. */
const NEEDS: readonly string[] = ["sh"];
/** Programs that our image also promises, and that the agent's tools use. */
const CONTENTS: readonly string[] = [
  "bash",
  "git",
  "rg",
  "node",
  "python3",
  "make",
  "cc",
  "jq",
  "patch",
  "curl",
  "npm",
];
const SECONDS = 30;

export interface ImageCheck {
  /** Pieces without which no box works; empty for a usable image. */
  readonly missing: readonly string[];
  /** Pieces that some tools will miss. */
  readonly absent: readonly string[];
  /** The version of Node; empty if there is none that runs. */
  readonly node: string;
}

/** Checks an image from inside a locked container of it. */
export async function checkImage(engine: Engine, root: string, image: string): Promise<ImageCheck> {
  const wanted = [...NEEDS, ...CONTENTS];
  const script = `for t in ${wanted.join(" ")}; do command -v $t >/dev/null 2>&1 || echo "no $t"; done; node --version; echo ready`;
  const plan = {
    root,
    image,
    argv: ["sh", "-c", script],
    memory: 256 * 2 ** 20,
    pids: 64,
    labels: { "dev.harness.check": "1" },
  };
  try {
    return readCheck(await runOnce(engine, plan, SECONDS * 1000));
  } catch (thrown) {
    if (!/executable file not found|no such file/i.test(String(thrown))) throw thrown;
    return { missing: ["sh"], absent: [], node: "" };
  }
}

export function readCheck({ stdout: output, exit_code }: Pick<Outcome, "stdout" | "exit_code">): ImageCheck {
  if (exit_code === null) return { missing: [`a sh that ends within ${SECONDS} s`], absent: [], node: "" };
  const gone = new Set([...output.matchAll(/^no (\S+)$/gm)].map((match) => match[1] ?? ""));
  const node = /^v(\d+\.\d+\.\d+)$/m.exec(output)?.[1] ?? "";
  const works = /^ready$/m.test(output);
  const missing = works ? NEEDS.filter((name) => gone.has(name)) : ["a sh that works"];
  return { missing, absent: CONTENTS.filter((name) => gone.has(name)), node };
}
