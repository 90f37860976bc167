import { lastAnswer, HarnessCommand } from "../command.ts";
import { configFor, settingFlags } from "../settings.ts";

export class Demo extends HarnessCommand {
  static override summary = "See a run from its start to its end on a small repository with a failing test.";
  static override description =
    "Works on a copy that is thrown away. Where a model is set up it does the task; otherwise a scenario stands in for it: its replies are written in examples/scripted-demo.jsonl, everything else is real: the policy, the box, the tests.";
  static override flags = {
    model: settingFlags.model,
    provider: settingFlags.provider,
    "base-url": settingFlags["base-url"],
    engine: settingFlags.engine,
    image: settingFlags.image,
    memory: settingFlags.memory,
    pids: settingFlags.pids,
  };
  static override examples = ["harness demo", "harness demo --model qwen3:8b"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Demo);
    const { runDemo } = await import("../../app/run/demo-run.ts");
    const finished = await runDemo(this.host, await configFor(flags), flags);
    if (!flags.json && finished.answer !== null) await lastAnswer(finished.answer);
    process.exitCode = finished.exit_code;
  }
}
