import { lastAnswer, HarnessCommand } from "../command.ts";
import { configFor, settingFlags } from "../settings.ts";

export class Demo extends HarnessCommand {
  static override summary = "Show a run from start to end on a small repository with a failing test.";
  static override description =
    "Works on a copy that is thrown away. If a model is set up, it does the task. Otherwise a scenario stands in for the model: its replies come from examples/scripted-demo.jsonl, and everything else is real: the policy, the box, the tests.";
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
