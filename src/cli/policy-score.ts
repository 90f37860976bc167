import { open } from "node:fs/promises";
import type { Mode, Verdict } from "../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { linesIn } from "../core/line-diff.ts";
import type { CommandContext, CommandPolicy } from "../policy/decide.ts";
import type { JudgedCommand } from "./policy-commands.ts";

/** A command whose verdict is not the wanted one. */
interface Wrong {
  readonly line: number;
  readonly cmd: string;
  readonly mode: Mode;
  readonly class: string;
  readonly want: JudgedCommand["want"];
  readonly got: Verdict;
  readonly rule: string;
  readonly reason: string;
  readonly debatable: boolean;
}

interface Count {
  right: number;
  total: number;
}

/** Judges the lines of a file one by one and keeps the count. */
export class Score {
  readonly wrong: Wrong[] = [];
  /** Without the debatable ones. */
  readonly classes = new Map<string, Count>();
  readonly sure: Count = { right: 0, total: 0 };
  readonly debatable: Count = { right: 0, total: 0 };
  private readonly policy: CommandPolicy;
  private readonly context: CommandContext;

  constructor(policy: CommandPolicy, context: CommandContext) {
    this.policy = policy;
    this.context = context;
  }

  /** Undefined for a right one. */
  judge(judged: JudgedCommand, line: number): Wrong | undefined {
    const { cmd, want, class: group, debatable, mode = this.context.mode } = judged;
    const { decision: got, rules } = this.policy.decide(cmd, { ...this.context, mode });
    const right = want === got || (want === "not-allow" && got !== "allow");
    for (const count of debatable ? [this.debatable] : [this.sure, this.classOf(group)]) {
      count.total += 1;
      if (right) count.right += 1;
    }
    if (right) return undefined;
    const [first] = rules;
    const wrong = {
      line,
      cmd,
      mode,
      class: group,
      want,
      got,
      rule: first?.id ?? "",
      reason: first?.reason ?? "",
    };
    this.wrong.push({ ...wrong, debatable });
    return this.wrong.at(-1);
  }

  private classOf(group: string): Count {
    const known = this.classes.get(group);
    if (known !== undefined) return known;
    const count = { right: 0, total: 0 };
    this.classes.set(group, count);
    return count;
  }
}

/** The lines of a file, or of stdin for `-`. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === "-") {
    yield* linesIn(process.stdin);
    return;
  }
  await using handle = await opened(file);
  yield* linesIn(handle.createReadStream());
}

async function opened(file: string): ReturnType<typeof open> {
  try {
    const handle = await open(file);
    if (!(await handle.stat()).isDirectory()) return handle;
    await handle.close();
    throw new Error("it is a folder");
  } catch (thrown) {
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}
