import { type Concession, withoutField } from "../http/concessions.ts";
import { asFields, asList, type Fields } from "../http/fields.ts";

/** Fields that some server is known to refuse, by what it says then. */
export const OPENAI_CONCESSIONS: readonly Concession[] = [
  {
    name: "stream_options",
    says: /stream_options|include_usage/i,
    without: (body) => withoutField(body, "stream_options"),
  },
  {
    name: "max_tokens",
    says: /max_completion_tokens['"`]? instead|max_tokens['"`]? is not supported/i,
    without: (body) => renamed(body, "max_tokens", "max_completion_tokens"),
  },
  {
    name: "max_completion_tokens",
    says: /max_completion_tokens[^.]{0,60}(?:extra|not (?:permitted|supported|allowed))|un(?:known|recognized|supported|expected)[^.]{0,60}max_completion_tokens/i,
    without: (body) => renamed(body, "max_completion_tokens", "max_tokens"),
  },
  {
    name: "parallel_tool_calls",
    says: /parallel_tool_calls|parallel tool calls/i,
    without: (body) => withoutField(body, "parallel_tool_calls"),
  },
  {
    name: "temperature",
    says: /\btemperature\b/i,
    without: (body) => withoutField(body, "temperature"),
    note: "the server takes no temperature for this model",
  },
  ...["reasoning_effort", "reasoning", "chat_template_kwargs"].map((field) => ({
    name: field,
    says: new RegExp(`\\b${field}\\b|enable_thinking`, "i"),
    without: (body: Fields) => withoutField(body, field),
    note: "the server does not let thinking be chosen",
  })),
  { name: "cache_control", says: /cache_control/i, without: unmarked },
  { name: "reasoning_content", says: /reasoning_content/i, without: thoughtless },
  {
    name: "response_format",
    says: /response_format|json_schema|structured output|custom grammar|guided|grammar constraint/i,
    without: (body) => withoutField(body, "response_format"),
    note: "the server takes no schema for the answer",
  },
];

function renamed(body: Fields, from: string, to: string): Fields | undefined {
  if (!(from in body) || to in body) return undefined;
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [key === from ? to : key, value]));
}

function unmarked(body: Fields): Fields | undefined {
  return changed(body, (message) => {
    const parts = asList(message["content"]).map(asFields);
    const marked = parts.length === 1 && parts[0]?.["cache_control"] !== undefined;
    return marked ? { ...message, content: parts[0]?.["text"] } : message;
  });
}

function thoughtless(body: Fields): Fields | undefined {
  return changed(body, (message) => withoutField(message, "reasoning_content") ?? message);
}

function changed(body: Fields, change: (message: Fields) => Fields): Fields | undefined {
  const before = asList(body["messages"]);
  const after = before.map((message) => change(asFields(message) ?? {}));
  return after.some((message, index) => message !== before[index]) ? { ...body, messages: after } : undefined;
}
