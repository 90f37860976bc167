import type { ToolCall } from "../../src/core/messages.ts";
import type { ReadsWritten } from "../../src/models/written-calls.ts";

/** Reads one form of written calls, in whole blocks at the end of a reply; for tests of what stands around it. */
export const standIn: ReadsWritten = (tools) => {
  let held = "";
  return {
    push: (chunk) => {
      held += chunk;
      const cut = held.indexOf("<");
      const certain = cut === -1 ? held : held.slice(0, cut);
      held = held.slice(certain.length);
      return certain;
    },
    end: () => {
      const blocks = [...held.matchAll(/<tool_call>(.*?)<\/tool_call>/gs)].map(([, json = ""]) => json);
      const calls = blocks.map((json) => {
        const { name, arguments: args } = JSON.parse(json) as { name: string; arguments: ToolCall["args"] };
        return { name, args };
      });
      const offered = calls.filter(({ name }) => tools.some((tool) => tool.name === name));
      return { calls: offered, malformed: [], prose: offered.length === 0 ? held : "" };
    },
  };
};
