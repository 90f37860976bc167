import type { Engine } from "../engine.ts";
import { type Outcome, runOnce } from "../oneshot.ts";

/** What the runner needs of any image; a user's own image must have these and nothing else. */
const RUNNER_NEEDS = ["sh", "node"] as const;
/** What our image promises on top, and what tools of the agent make use of. */
const CONTENTS = ["bash", "git", "rg", "python3", "make", "cc", "jq", "patch", "curl", "npm"] as const;
const OLDEST_NODE = 20;
const SECONDS = 30;

export interface ImageCheck {
  /** Pieces without which the runner cannot work: empty for a usable image. */
  readonly missing: readonly string[];
  /** Pieces that some tools will miss. */
  readonly absent: readonly string[];
  readonly node: string;
}

/** Looks into an image from inside a locked container of it. */
export async function checkImage(engine: Engine, root: string, image: string): Promise<ImageCheck> {
  const wanted = [...RUNNER_NEEDS, ...CONTENTS];
  const script = `for t in ${wanted.join(" ")}; do command -v $t >/dev/null 2>&1 || echo "no $t"; done; node --version`;
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
  const tooOld = node !== "" && Number(node.split(".")[0]) < OLDEST_NODE;
  const missing = RUNNER_NEEDS.filter((name) => gone.has(name)).map(String);
  if (node === "" && !gone.has("node")) missing.push("a node that says its version");
  if (tooOld) missing.push(`node ${OLDEST_NODE} or later (it has ${node})`);
  return { missing, absent: CONTENTS.filter((name) => gone.has(name)), node };
}
